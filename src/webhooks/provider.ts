import { RedlockError } from "../errors.ts";

/** What a genuine delivery says of itself. */
export interface VerifiedWebhook {
  /** The sender's name of the event, the same in every redelivery: 1 … 255 visible ASCII characters. */
  readonly id: string;
  /** When the sender signed the delivery, in ms since 1970; only where the signature covers it. */
  readonly timestamp?: number;
  /**
   * Whether the signature covers the id. Where it does not, whoever captured one delivery can send the same
   * body again under a fresh id; deduplicate on the body's hash as well if that matters.
   */
  readonly idSigned: boolean;
}

/**
 * One sender of webhooks: tells whether a delivery is genuine, and what its id is.
 *
 * @example
 * const provider = github({ secret: env.GITHUB_WEBHOOK_SECRET });
 * const body = new Uint8Array(await request.arrayBuffer());
 * const { id } = await provider.verify(request, body);
 */
export interface WebhookProvider {
  /**
   * Separates this sender's ids from every other sender's. Two senders with secrets of their own need two
   * names, or one could use up the other's ids.
   */
  readonly name: string;
  /**
   * Checks one delivery. `body` is the request's body as it arrived, byte for byte; the request's own body
   * is neither read nor needed.
   *
   * @throws {WebhookVerificationError} the delivery is not genuine, or not recent enough.
   */
  verify(request: Request, body: Uint8Array): Promise<VerifiedWebhook>;
}

/**
 * Why a delivery is refused. `missing-header`: a header that the sender always sets is absent or empty.
 * `malformed-header`: a header is not of the sender's form. `bad-signature`: no secret or key made this
 * signature for this body. `outside-tolerance`: signed too long ago, or too far in the future.
 */
export type WebhookVerificationReason =
  | "missing-header"
  | "malformed-header"
  | "bad-signature"
  | "outside-tolerance";

/**
 * A delivery is not genuine; answer 401 and do nothing else. Its `code` is `WEBHOOK_INVALID`. Neither the
 * secret, nor the expected signature, nor anything that was sent is part of it: it can be logged as it is.
 *
 * @example
 * if (error instanceof WebhookVerificationError) return new Response(error.reason, { status: 401 });
 */
export class WebhookVerificationError extends RedlockError {
  /** The name of the provider that refused. */
  readonly provider: string;
  readonly reason: WebhookVerificationReason;

  constructor(provider: string, reason: WebhookVerificationReason, why: string) {
    super("WEBHOOK_INVALID", `${provider}: ${why}`);
    this.name = "WebhookVerificationError";
    this.provider = provider;
    this.reason = reason;
  }
}

/**
 * The value of a header that the sender always sets.
 *
 * @throws {WebhookVerificationError} `missing-header` when it is absent or empty.
 */
export function requireHeader(provider: string, request: Request, header: string): string {
  const value = request.headers.get(header);
  if (!value) throw new WebhookVerificationError(provider, "missing-header", `no header ${header}`);
  return value;
}

/**
 * The delivery's id from its header. It becomes part of a key and of log lines, so it is bounded: 1 … 255
 * visible ASCII characters. A space is refused because a header that was sent twice arrives as `"a, b"`.
 *
 * @throws {WebhookVerificationError} `missing-header` or `malformed-header`.
 */
export function requireId(provider: string, request: Request, header: string): string {
  const id = requireHeader(provider, request, header);
  if (!/^[\x21-\x7e]{1,255}$/.test(id)) {
    const why = `${header} is not an id of 1 to 255 visible ASCII characters`;
    throw new WebhookVerificationError(provider, "malformed-header", why);
  }
  return id;
}

/**
 * Refuses what is not bytes: a body that was read as text, or parsed and written again, is not what was
 * signed, and would fail as a bad signature that nobody can explain.
 *
 * @throws {TypeError} `body` is not a `Uint8Array`.
 */
export function requireBytes(body: unknown): void {
  if (!(body instanceof Uint8Array)) {
    throw new TypeError(`body must be the request's bytes as a Uint8Array, not ${typeof body}`);
  }
}

/**
 * The provider's name, by default the sender's.
 *
 * @throws {TypeError} it is not a string, or empty.
 */
export function providerName(name: string | undefined, fallback: string): string {
  if (name === undefined) return fallback;
  if (typeof name !== "string" || name === "") {
    throw new TypeError(`name must be a string that is not empty, not ${JSON.stringify(name)}`);
  }
  return name;
}

/**
 * A list of secrets (or of public keys) from an option that takes one or several. The values are never part
 * of a message.
 *
 * @throws {TypeError} nothing is given, or one of them is not a string, or empty: mostly a variable that is
 * not set, and an empty secret is one that everybody knows.
 */
export function secretList(option: string, value: string | readonly string[] | undefined): readonly string[] {
  const list = typeof value === "string" ? [value] : value;
  if (!Array.isArray(list) || list.length === 0) {
    throw new TypeError(`${option} must be a string or a list of strings that is not empty`);
  }
  for (const one of list) {
    if (typeof one !== "string" || one === "") {
      throw new TypeError(`${option} must not be empty, and nothing but a string (is the variable set?)`);
    }
  }
  return list;
}
