import {
  providerName,
  requireBytes,
  requireHeader,
  requireId,
  secretList,
  type WebhookProvider,
  WebhookVerificationError,
} from "./provider.ts";
import { decodeHex, signatureCheck } from "./signature.ts";

/** Options of {@link github}. */
export interface GitHubOptions {
  /** The webhook's secret, or several while it is being rotated: each of them is accepted. */
  readonly secret: string | readonly string[];
  /** Default `"github"`. Give webhooks with secrets of their own names of their own. */
  readonly name?: string | undefined;
}

/**
 * GitHub's webhooks: `X-Hub-Signature-256`, the hex HMAC-SHA256 of the body, and the id from
 * `X-GitHub-Delivery`, which the signature does not cover (`idSigned: false`). GitHub signs no time, so
 * there is no tolerance; the older `X-Hub-Signature` (SHA-1) is not looked at.
 *
 * GitHub waits 10 s for an answer and does not retry by itself; a redelivery by hand or over its API keeps
 * the id.
 *
 * @throws {TypeError} at once, when a secret is empty or not a string.
 *
 * @example
 * const provider = github({ secret: env.GITHUB_WEBHOOK_SECRET });
 * const { id } = await provider.verify(request, body);
 */
export function github(options: GitHubOptions): WebhookProvider {
  const name = providerName(options.name, "github");
  const encoder = new TextEncoder();
  const secrets = secretList("secret", options.secret).map((secret) => encoder.encode(secret));
  const signed = signatureCheck({ name: "HMAC", hash: "SHA-256" }, secrets);

  return {
    name,
    async verify(request, body) {
      requireBytes(body);
      const header = requireHeader(name, request, "x-hub-signature-256");
      const id = requireId(name, request, "x-github-delivery");
      const signature = header.startsWith("sha256=") ? decodeHex(header.slice(7)) : undefined;
      if (signature?.length !== 32) {
        const why = "x-hub-signature-256 is not sha256= and 64 digits of lower-case hex";
        throw new WebhookVerificationError(name, "malformed-header", why);
      }
      if (!(await signed([signature], body))) {
        throw new WebhookVerificationError(name, "bad-signature", "no secret made this signature");
      }
      return { id, idSigned: false };
    },
  };
}
