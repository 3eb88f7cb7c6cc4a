import { bodyHash } from "./body.ts";
import {
  idFromBody,
  requireBytes,
  requireForm,
  requireForms,
  requireId,
  type WebhookProvider,
} from "./provider.ts";
import { badSignature, decodeHex, requireSignature, signatureCheck } from "./signature.ts";

/** Options of {@link github}. */
export interface GitHubOptions {
  /** The webhook's secret, or several while it is being rotated: each of them is accepted. */
  readonly secret: string | readonly string[];
  /**
   * `"header"`: the id is `X-GitHub-Delivery`, which is not signed. `"body"`: the hash of the body, which is;
   * then no header can make a captured delivery a new one. Default `"header"`.
   */
  readonly id?: "header" | "body" | undefined;
  /** Default `"github"`. Give webhooks with secrets of their own names of their own. */
  readonly name?: string | undefined;
}

/**
 * GitHub's webhooks: `X-Hub-Signature-256`, the hex HMAC-SHA256 of the body, and the id from
 * `X-GitHub-Delivery`, which the signature does not cover (`idSigned: false`). GitHub signs no time, so
 * there is no tolerance; the older `X-Hub-Signature` (SHA-1) is not looked at.
 *
 * GitHub waits 10 s for an answer and does not retry by itself; a redelivery by hand or over its API keeps
 * the id. All webhooks that hear of one event get it under one id: give each a name of its own.
 *
 * @throws {TypeError} at once, when a secret is empty or not a string.
 *
 * @example
 * const provider = github({ secret: env.GITHUB_WEBHOOK_SECRET });
 * const { id } = await provider.verify(request, body);
 */
export function github(options: GitHubOptions): WebhookProvider {
  const name = requireForm("name", options.name ?? "github");
  const fromBody = idFromBody(options.id);
  const signed = signatureCheck("HMAC-SHA256", requireForms("secret", options.secret));

  return {
    name,
    async verify(request, body) {
      requireBytes(body);
      const signature = requireSignature(name, request, "x-hub-signature-256", "sha256=", decodeHex, 32);
      const id = fromBody ? undefined : requireId(name, request, "x-github-delivery");
      if (!(await signed(signature, body))) throw badSignature(name);
      return { id: id ?? (await bodyHash(body)), idSigned: fromBody };
    },
  };
}
