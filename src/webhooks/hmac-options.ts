import { checkNames, checkType } from "../check.ts";
import type { Encoding } from "./encode.ts";
import { listOf, requireForm, requireForms } from "./option.ts";
import { checkSignedText } from "./signed-text.ts";
import type { ToleranceOptions } from "./tolerance.ts";

/** Where a sender puts the time of signing. */
export type HmacTime =
  /** A header with seconds since 1970, ten digits. `signedText` must contain `{time}`. */
  | { readonly header: string }
  /** The one entry of the signature's header with this prefix, e.g. `t=`. Needs `separator`; otherwise as a header. */
  | { readonly entry: string }
  /** A field of the JSON body with ms since 1970, as a number. It is left out of the body's hash. */
  | { readonly field: string };

/** Where a sender puts the event's id. */
export type HmacId =
  /** A header, or the first that is present of several. The id counts as signed if `signedText` contains `{id}`. */
  | { readonly header: string | readonly string[] }
  /** A field of the JSON body, or the body's hash if that field holds no id. */
  | { readonly field: string };

/**
 * Options of `hmacProvider`. A value of the wrong type or form is a `TypeError` at set-up; so are `tolerance` and
 * `now` without `time`.
 */
export interface HmacProviderOptions extends ToleranceOptions {
  /**
   * The provider's name: the first part of every key's scope and of every error message, e.g. `acme`. At least one
   * character.
   */
  readonly name: string;
  /**
   * The secret, or several while it is being rotated: each of them is accepted. A string stands for its UTF-8. If the
   * sender signs with the bytes behind a hex or base64 text, decode it: `decodeBase64(env.ACME_SECRET)`. At least one,
   * none of them empty.
   */
  readonly secret: string | Uint8Array | readonly (string | Uint8Array)[];
  /**
   * Whether one-way tags of the secrets become part of the keys' scope, which keeps the ids of senders with different
   * secrets apart. Set it to false only if all senders of this `name` share one secret: then a rotation changes no
   * key. Default true.
   */
  readonly tagSecrets?: boolean | undefined;
  /** The header with the signature, e.g. `x-acme-signature`. */
  readonly header: string;
  /** The HMAC's hash. Default `"HMAC-SHA256"`. */
  readonly algorithm?: "HMAC-SHA1" | "HMAC-SHA256" | "HMAC-SHA512" | undefined;
  /**
   * How the signature is encoded. Only the canonical spelling is accepted: lower-case hex, base64 with padding,
   * base64url without. Default `"hex"`.
   */
  readonly encoding?: Encoding | undefined;
  /** The text before each signature, e.g. `sha256=`. Default none. */
  readonly prefix?: string | undefined;
  /**
   * What separates the entries of a header that may hold several signatures, e.g. `,`. One signature that holds is
   * enough, and entries of other forms are skipped. More than 16 entries are refused. Default: the header is one
   * signature.
   */
  readonly separator?: string | undefined;
  /**
   * What the signature covers, e.g. `{id}.{time}.{body}`. It ends with `{body}`; `{id}` and `{time}` may each occur
   * once, and must if the signature covers them. The character behind `{id}` ends the id, so the sender must never use
   * it in an id: an id that contains it is refused, or a captured delivery could be split at another place. Default
   * `{body}`.
   */
  readonly signedText?: string | undefined;
  /**
   * Where the time of signing is, e.g. `{ header: "acme-time" }`. Deliveries outside `tolerance` are refused. Default:
   * the sender signs no time, and deliveries of any age are accepted.
   */
  readonly time?: HmacTime | undefined;
  /**
   * Where the event's id is, e.g. `{ field: "event_id" }`. Default: the SHA-256 of the body, or, with `time.field`, of
   * the JSON without that field.
   */
  readonly id?: HmacId | undefined;
  /** A header that becomes `deliveryId`, or several of which the first with an id does. For logs. Default none. */
  readonly deliveryId?: string | readonly string[] | undefined;
  /**
   * Reads what the id is unique within, e.g. `(request) => [requireId("acme", request, "acme-account")]`. It is called
   * before the signature is checked; throw a `WebhookVerificationError` to refuse the delivery. An empty list or an
   * empty string is a `TypeError` of `verify`. Default: no scope.
   */
  readonly scope?: ((request: Request) => readonly string[]) | undefined;
}

const optionNames: Readonly<Record<keyof HmacProviderOptions, 1>> = {
  name: 1,
  secret: 1,
  tagSecrets: 1,
  header: 1,
  algorithm: 1,
  encoding: 1,
  prefix: 1,
  separator: 1,
  signedText: 1,
  time: 1,
  id: 1,
  deliveryId: 1,
  scope: 1,
  tolerance: 1,
  now: 1,
};

const headerForm = /^[\w!#$%&'*+.^`|~-]+$/;

/**
 * Checks all options but `tolerance` and `now`, which are checked with the tolerance.
 *
 * @throws {TypeError} an option is unknown, missing or not of its form, or options contradict each other
 */
export function checkHmacOptions(options: HmacProviderOptions): void {
  checkNames("hmacProvider", options, optionNames);
  const { tagSecrets, algorithm = "HMAC-SHA256", encoding = "hex", prefix, separator, signedText } = options;
  requireForm("name", options.name);
  for (const secret of listOf(options.secret)) checkSecret(secret);
  if (tagSecrets !== undefined) checkType("tagSecrets", tagSecrets, "boolean");
  requireForm("header", options.header, headerForm);
  requireForm("algorithm", algorithm, /^HMAC-SHA(1|256|512)$/);
  requireForm("encoding", encoding, /^(hex|base64|base64url)$/);
  if (prefix !== undefined) checkType("prefix", prefix, "string");
  if (separator !== undefined) requireForm("separator", separator);
  if (signedText !== undefined) checkSignedText(signedText);
  checkPlace("time", options.time, { header: headerForm, entry: /./s, field: /./s });
  checkPlace("id", options.id, { header: headerForm, field: /./s });
  if (options.deliveryId !== undefined) requireForms("deliveryId", options.deliveryId, headerForm);
  if (options.scope !== undefined) checkType("scope", options.scope, "function");
  checkCombination(options);
}

/** The message does not repeat any part of the secret. */
function checkSecret(secret: unknown): void {
  if ((typeof secret === "string" || secret instanceof Uint8Array) && secret.length > 0) return;
  throw new TypeError("secret must be a string or a Uint8Array that is not empty (is the variable set?)");
}

/**
 * Refuses a place that is not of exactly one kind, as `{ header: "acme-time" }` is.
 *
 * @param forms what the names of places may be, by kind; an id may have several headers
 */
function checkPlace(
  option: string,
  place: HmacTime | HmacId | undefined,
  forms: Readonly<Record<string, RegExp>>,
): void {
  if (place === undefined) return;
  checkNames(option, checkType(option, place, "object"), forms);
  const given = Object.entries(place).filter(([, value]) => value !== undefined);
  if (given.length !== 1) throw new TypeError(`${option} must have one of ${Object.keys(forms).join(", ")}`);
  for (const [kind, name] of given) {
    const several = option === "id" && kind === "header";
    (several ? requireForms : requireForm)(`${option}.${kind}`, name, forms[kind]);
  }
}

/** Refuses options that contradict each other. Ignored, each would leave a user less protected than they believe. */
function checkCombination(options: HmacProviderOptions): void {
  const { signedText, separator, tolerance, now } = options;
  // A place that is undefined is absent: whether the object has its name says nothing.
  const time: Partial<Record<"header" | "entry" | "field", string>> = options.time ?? {};
  const id: { header?: string | readonly string[]; field?: string } = options.id ?? {};
  const coversId = signedText?.includes("{id}");
  const coversTime = signedText?.includes("{time}");
  const timeInHeaders = (time.header ?? time.entry) !== undefined;
  if (timeInHeaders && !coversTime) {
    throw new TypeError("signedText must contain {time}: a time that is not signed protects from nothing");
  }
  if (coversTime && !timeInHeaders) {
    throw new TypeError("signedText contains {time}: time must name a header or an entry");
  }
  if (coversId && id.header === undefined) {
    throw new TypeError("signedText contains {id}: id must name a header");
  }
  if (time.entry !== undefined && separator === undefined) {
    throw new TypeError("time.entry needs separator: the signature's header must have entries");
  }
  if (options.time === undefined && (tolerance !== undefined || now !== undefined)) {
    throw new TypeError("tolerance and now need time: without it deliveries of any age are accepted");
  }
}
