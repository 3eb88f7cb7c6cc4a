import { RedlockError } from "../errors/errors.ts";

/** A delivery whose signature was verified. */
export interface VerifiedWebhook {
  /** Equal in every redelivery: 1 to 255 visible ASCII characters. */
  readonly id: string;
  /** The id is unique within these names, which may not be signed. */
  readonly scope?: readonly string[];
  /** In ms since 1970. Absent if the signature covers no time. */
  readonly timestamp?: number;
  /**
   * One-way tags of the secrets, part of the key's scope, so that a sender with another secret cannot use up these ids.
   */
  readonly secretTags?: readonly string[];
  /** The sender's name for the delivery, not signed: use it in logs, never for a decision. */
  readonly deliveryId?: string;
  /** If false, anyone with a captured delivery can repeat it under a new id, which `id: "body"` prevents. */
  readonly idSigned: boolean;
}

/**
 * Verifies one sender's deliveries and reads their ids.
 *
 * @example
 * const provider = github({ secret: env.GITHUB_WEBHOOK_SECRET });
 * const body = new Uint8Array(await request.arrayBuffer());
 * const { id } = await provider.verify(request, body);
 */
export interface WebhookProvider {
  /**
   * Separates this sender's ids from all others. A name of your own leaves secrets out of the key, so senders with
   * different secrets need different names.
   */
  readonly name: string;
  /** The most bytes of a delivery: the default of `maxRequestBody`. */
  readonly maxBody?: number | undefined;
  /**
   * For how long the sender retries, in ms. A `retention` below it is a `RangeError`, because a later retry would run
   * again. Default: unknown, and any retention is accepted.
   */
  readonly retries?: number | undefined;
  /**
   * Verifies one delivery.
   *
   * @param request only its headers are read
   * @param body the request's body as it arrived, byte for byte
   * @throws {WebhookVerificationError} the delivery is not genuine or not recent enough
   * @throws {TypeError} `body` is not a `Uint8Array`
   */
  verify(request: Request, body: Uint8Array): Promise<VerifiedWebhook>;
}

/**
 * Why a delivery is refused: a header is absent or malformed, no key made this signature for this body, or the signed
 * time is missing or too far from now.
 */
export type WebhookVerificationReason =
  | "missing-header"
  | "malformed-header"
  | "bad-signature"
  | "outside-tolerance";

/**
 * A delivery is not genuine: do nothing and answer 401, because Shopify and Discord test for that status. The message
 * has no secret, no expected signature, and of the request at most the signed URL without its query's values.
 *
 * @example
 * if (error instanceof WebhookVerificationError) return new Response(error.reason, { status: 401 });
 */
export class WebhookVerificationError extends RedlockError {
  readonly provider: string;
  readonly reason: WebhookVerificationReason;

  constructor(provider: string, reason: WebhookVerificationReason, why: string) {
    super("WEBHOOK_INVALID", `${provider}: ${why}`);
    this.name = "WebhookVerificationError";
    this.provider = provider;
    this.reason = reason;
  }
}

export function badSignature(provider: string, why: string): WebhookVerificationError {
  return new WebhookVerificationError(provider, "bad-signature", why);
}

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

/** A query's values may be your users' data. */
export function nameUrl(url: string): string {
  return url
    .replace(/^(\w+:\/\/)[^/?#]*@/, "$1")
    .replace(/\?.*/s, "?…")
    .slice(0, 200);
}
