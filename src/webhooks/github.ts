import { checkNames } from "../check.ts";
import { idFromBody, requireForms } from "./option.ts";
import type { WebhookProvider } from "./provider.ts";
import { uncheckedHmacProvider } from "./unchecked-hmac-provider.ts";

/** Options of {@link github}. */
export interface GitHubOptions {
  /** The webhook's secret, or several while it is being rotated: each of them is accepted. */
  readonly secret: string | readonly string[];
  /**
   * `"body"`: the id is the SHA-256 of the body, which is signed: no header can turn a captured delivery into a new
   * one. Two events with equal bodies count as one; `docs/webhooks.md` lists events whose bodies may be equal.
   * `"header"`: the id is `X-GitHub-Delivery`, which is not signed. Default `"body"`.
   */
  readonly id?: "header" | "body" | undefined;
  /**
   * The provider's name in the scope of keys. Default `"github"` and a tag of the secrets, which keeps senders with
   * different secrets apart. With a name of your own the secrets are left out: give each sender its own name.
   */
  readonly name?: string | undefined;
}

/** "Payloads are capped at 25 MB": https://docs.github.com/en/webhooks/webhook-events-and-payloads */
const maxDelivery = 25 * 1024 * 1024;

const optionNames: Readonly<Record<keyof GitHubOptions, 1>> = { secret: 1, id: 1, name: 1 };

/**
 * GitHub's webhooks: `X-Hub-Signature-256` is the hex HMAC-SHA256 of the body. The id is the body's hash;
 * `deliveryId` is `X-GitHub-Delivery`, which the signature does not cover. GitHub signs no time, so there is no
 * tolerance. The older `X-Hub-Signature` (SHA-1) is ignored.
 *
 * GitHub waits 10 s for an answer and does not retry by itself; a redelivery by hand or through its API keeps the
 * body and the delivery id. Several webhooks may send an event in equal bodies: give each of them its own name.
 *
 * @throws {TypeError} at once: a secret is empty or not a string, or an option is unknown
 *
 * @example
 * const provider = github({ secret: env.GITHUB_WEBHOOK_SECRET });
 * const { id } = await provider.verify(request, body);
 */
export function github(options: GitHubOptions): WebhookProvider {
  checkNames("github", options, optionNames);
  const provider = uncheckedHmacProvider({
    name: options.name ?? "github",
    tagSecrets: options.name === undefined,
    secret: requireForms("secret", options.secret),
    header: "x-hub-signature-256",
    prefix: "sha256=",
    id: idFromBody(options.id) ? undefined : { header: "x-github-delivery" },
    deliveryId: "x-github-delivery",
  });
  return { ...provider, maxBody: maxDelivery };
}
