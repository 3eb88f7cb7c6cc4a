import { RedlockError } from "../errors.ts";

/** What a genuine delivery says of itself. */
export interface VerifiedWebhook {
  /** The sender's name of the event, the same in every redelivery: 1 … 255 visible ASCII characters. */
  readonly id: string;
  /**
   * What the id is unique within, beside the provider's name: it belongs to the key's scope. Absent where the
   * id alone tells events apart. It comes from headers, which the signature need not cover even where it
   * covers the id.
   */
  readonly scope?: readonly string[];
  /** When the sender signed the delivery, in ms since 1970; only where the signature covers it. */
  readonly timestamp?: number;
  /**
   * One-way tags of the secrets that the provider accepts, where it has no name of its own. They belong to the
   * key's scope: senders with secrets of their own then cannot use up each other's ids.
   */
  readonly secretTags?: readonly string[];
  /** What the sender calls the delivery, in a header that is not signed: for logs, never for a decision. */
  readonly deliveryId?: string;
  /**
   * Whether the signature covers the id. Where it does not, whoever captured one delivery can send the same
   * body again under a fresh id; where that matters, let the body name the event (`id: "body"`).
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
   * Separates this sender's ids from every other sender's. A provider of this package that is given one leaves
   * its secrets out of the key: senders with secrets of their own then need a name each.
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
 * signature for this body. `outside-tolerance`: signed too long ago, or too far in the future, or without a
 * time where the sender always signs one.
 */
export type WebhookVerificationReason =
  | "missing-header"
  | "malformed-header"
  | "bad-signature"
  | "outside-tolerance";

/**
 * A delivery is not genuine; answer 401, or 400 where a header is missing or not of the sender's form, and do nothing
 * else. Its `code` is `WEBHOOK_INVALID`. Neither the
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

/** What a header that is not of its sender's form is refused with. */
export function malformed(provider: string, header: string, why: string): WebhookVerificationError {
  return new WebhookVerificationError(provider, "malformed-header", `${header} ${why}`);
}

/** Whether it can be an id. It becomes part of a key and of log lines, so it is bounded. */
export function isId(value: unknown): value is string {
  return typeof value === "string" && /^[\x21-\x7e]{1,255}$/.test(value);
}

/**
 * The delivery's id, or a part of its scope, from a header: 1 … 255 visible ASCII characters. A space is
 * refused because a header that was sent twice arrives as `"a, b"`.
 *
 * @throws {WebhookVerificationError} `missing-header` or `malformed-header`.
 */
export function requireId(provider: string, request: Request, header: string): string {
  const id = requireHeader(provider, request, header);
  if (!isId(id)) throw malformed(provider, header, "is not 1 to 255 visible ASCII characters");
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
 * A string of some form from an option; by default it only must not be empty. It may be a secret, so it is
 * never part of the message.
 *
 * @throws {TypeError} it is something else: mostly a variable that is not set (and an empty secret is one
 * that everybody knows), or one that was pasted with a line's end.
 */
export function requireForm(option: string, value: unknown, form: RegExp = /./s): string {
  if (typeof value === "string" && form.test(value)) return value;
  throw new TypeError(`${option} must be a string that matches ${form} (is the variable set?)`);
}

/** The strings of an option that takes one or several, as `requireForm` does; at least one. */
export function requireForms(
  option: string,
  value: string | readonly string[] | undefined,
  form?: RegExp,
): readonly string[] {
  const list: readonly unknown[] = Array.isArray(value) && value.length > 0 ? value : [value];
  return list.map((one) => requireForm(option, one, form));
}

/** The form of secrets that their sender makes up: white space came in on the way here. */
export const generated: RegExp = /^\S+$/;

/** Whether ids come from the body, by the option of providers whose header with the id is not signed. */
export function idFromBody(id: "header" | "body" = "body"): boolean {
  return requireForm("id", id, /^(header|body)$/) === "body";
}

/** What the sender calls a delivery in a header that is not signed, where it does: for logs. */
export function deliveryIdIn({ headers }: Request, ...names: readonly string[]): { deliveryId?: string } {
  const deliveryId = names.map((name) => headers.get(name)).find(isId);
  return deliveryId === undefined ? {} : { deliveryId };
}
