import { checkNames } from "../check.ts";
import { bodyHash } from "./body.ts";
import {
  deliveryIdIn,
  idFromBody,
  requireBytes,
  requireForm,
  requireForms,
  requireId,
  type WebhookProvider,
} from "./provider.ts";
import { secretTags } from "./secret-tag.ts";
import { badSignature, decodeHex, requireSignature, signatureCheck } from "./signature.ts";

/** Options of {@link github}. */
export interface GitHubOptions {
  /** The webhook's secret, or several while it is being rotated: each of them is accepted. */
  readonly secret: string | readonly string[];
  /**
   * `"body"`: the id is the hash of the body, which is signed: no header can make a captured delivery a new one.
   * Two events whose bodies are equal to the byte are one then; `docs/webhooks.md` names those that may be.
   * `"header"`: the id is `X-GitHub-Delivery`, which is not signed. Default `"body"`.
   */
  readonly id?: "header" | "body" | undefined;
  /**
   * Stands for this sender in the scope of keys. Default `"github"` and a tag of the secrets, so that senders with
   * secrets of their own are apart; a name of your own leaves the secrets out: then give each sender one.
   */
  readonly name?: string | undefined;
}

const names: Readonly<Record<keyof GitHubOptions, 1>> = { secret: 1, id: 1, name: 1 };

/**
 * GitHub's webhooks: `X-Hub-Signature-256`, the hex HMAC-SHA256 of the body. The id is the body's hash;
 * `deliveryId` is `X-GitHub-Delivery`, which the signature does not cover. GitHub signs no time, so there is no
 * tolerance; the older `X-Hub-Signature` (SHA-1) is not looked at.
 *
 * GitHub waits 10 s for an answer and does not retry by itself; a redelivery by hand or over its API keeps
 * body and delivery id. Several webhooks may send one event in equal bodies: give each a name of its own.
 *
 * @throws {TypeError} at once, when a secret is empty or not a string.
 *
 * @example
 * const provider = github({ secret: env.GITHUB_WEBHOOK_SECRET });
 * const { id } = await provider.verify(request, body);
 */
export function github(options: GitHubOptions): WebhookProvider {
  checkNames("github", options, names);
  const name = requireForm("name", options.name ?? "github");
  const fromBody = idFromBody(options.id);
  const secrets = requireForms("secret", options.secret);
  const signed = signatureCheck("HMAC-SHA256", secrets);
  const tags = secretTags(options.name, secrets);

  return {
    name,
    async verify(request, body) {
      requireBytes(body);
      const signature = requireSignature(name, request, "x-hub-signature-256", "sha256=", decodeHex, 32);
      const id = fromBody ? undefined : requireId(name, request, "x-github-delivery");
      if (!(await signed(signature, body))) throw badSignature(name);
      return {
        id: id ?? (await bodyHash(body)),
        idSigned: fromBody,
        ...deliveryIdIn(request, "x-github-delivery"),
        ...(await tags()),
      };
    },
  };
}
