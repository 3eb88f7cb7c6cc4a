import { RedlockError } from "../errors/errors.ts";

/** A delivery whose signature was verified. */
export interface VerifiedWebhook {
  /** The event's id, equal in every redelivery: 1 … 255 visible ASCII characters. */
  readonly id: string;
  /**
   * Names that the id is unique within, besides the provider's name. They are part of the idempotency key's scope.
   * Absent if the id alone identifies the event. They come from headers, which the signature may not cover even
   * if it covers the id.
   */
  readonly scope?: readonly string[];
  /** When the sender signed the delivery, in ms since 1970. Absent if the signature covers no time. */
  readonly timestamp?: number;
  /**
   * One-way tags of the secrets that the provider accepts. Absent if the provider has a name of its own. They are
   * part of the key's scope, so that a sender with another secret cannot use up this sender's ids.
   */
  readonly secretTags?: readonly string[];
  /** The sender's name for the delivery, from a header that is not signed. Use it in logs, never for a decision. */
  readonly deliveryId?: string;
  /**
   * Whether the signature covers the id. If false, anyone who captured a delivery can send the same body again
   * under a new id. To prevent that, take the id from the body (`id: "body"`).
   */
  readonly idSigned: boolean;
}

/**
 * One sender of webhooks: verifies its deliveries and reads their ids.
 *
 * @example
 * const provider = github({ secret: env.GITHUB_WEBHOOK_SECRET });
 * const body = new Uint8Array(await request.arrayBuffer());
 * const { id } = await provider.verify(request, body);
 */
export interface WebhookProvider {
  /**
   * Separates this sender's ids from the ids of all other senders. If you name a provider of this package yourself,
   * its secrets are left out of the key: senders with different secrets then need different names.
   */
  readonly name: string;
  /** The most bytes that a delivery of this sender has, if it documents that. See `maxRequestBody`. */
  readonly maxBody?: number | undefined;
  /**
   * For how long after the first delivery the sender retries, in ms, where it documents that. A `retention` below it is a
   * `RangeError`: a retry that comes later would run again. Default: not known, and every retention is accepted.
   */
  readonly retries?: number | undefined;
  /**
   * Verifies one delivery.
   *
   * @param request the request. Its headers are read, its own body is not
   * @param body the request's body as it arrived, byte for byte
   * @throws {WebhookVerificationError} the delivery is not genuine, or not recent enough
   * @throws {TypeError} `body` is not a `Uint8Array`
   */
  verify(request: Request, body: Uint8Array): Promise<VerifiedWebhook>;
}

/**
 * Why a delivery is refused.
 *
 * - `missing-header`: a header that the sender always sets is absent or empty
 * - `malformed-header`: a header does not have the sender's form
 * - `bad-signature`: none of the secrets or keys made this signature for this body
 * - `outside-tolerance`: signed too long ago, too far in the future, or without the time that the sender always signs
 */
export type WebhookVerificationReason =
  | "missing-header"
  | "malformed-header"
  | "bad-signature"
  | "outside-tolerance";

/**
 * A delivery is not genuine. Do nothing, and answer 401, whatever the `reason`: Shopify and Discord test for that status
 * before they accept an app. Its `code` is `WEBHOOK_INVALID`. It is safe to log: it contains neither the secret, nor the
 * expected signature, nor anything that was sent but, if the URL is signed, that URL without the values in its query.
 *
 * @example
 * if (error instanceof WebhookVerificationError) return new Response(error.reason, { status: 401 });
 */
export class WebhookVerificationError extends RedlockError {
  /** The name of the provider that refused the delivery. */
  readonly provider: string;
  readonly reason: WebhookVerificationReason;

  constructor(provider: string, reason: WebhookVerificationReason, why: string) {
    super("WEBHOOK_INVALID", `${provider}: ${why}`);
    this.name = "WebhookVerificationError";
    this.provider = provider;
    this.reason = reason;
  }
}

/** The error for a signature that does not hold. */
export function badSignature(provider: string, why: string): WebhookVerificationError {
  return new WebhookVerificationError(provider, "bad-signature", why);
}

/** Why none of the keys may have made a signature: the usual causes. */
export function noneOfTheKeys(url: string | undefined): string {
  const causes = `either the secret or key is not that of this endpoint and mode (test or live), or what was signed was changed \
before it was verified, for example a body that was parsed and serialised again`;
  const ofUrl =
    url === undefined
      ? ""
      : `, or the sender signed another URL than ${nameUrl(url)}: if a proxy changes host or protocol, set the option url \
to the URL that the sender calls`;
  return `none of the keys made this signature: ${causes}${ofUrl}`;
}

/** A URL for messages: without a password, and without the values in its query, in which your users' data may stand. */
export function nameUrl(url: string): string {
  return url
    .replace(/^(\w+:\/\/)[^/?#]*@/, "$1")
    .replace(/\?.*/s, "?…")
    .slice(0, 200);
}
