import {
  type Check,
  checkOptions,
  checkType,
  later,
  milliseconds,
  type Schema,
  typed,
} from "../../check/check.ts";
import { decodeBase64, decodeBase64Url, decodeHex, type Encoding } from "../encoding.ts";
import { listOf, refuseNoise, requireForm, requireForms } from "../option-checks.ts";
import type { ToleranceOptions } from "../options.ts";
import type { WebhookProvider } from "../provider.ts";
import { readerOf, type Scheme } from "../scheme.ts";
import { algorithms, type Key, type SignatureAlgorithm, signatureCheck } from "../signature-check.ts";
import { type ReadSigned, verifier } from "../verifier.ts";

/** What describes a signature in a header. */
type Described = Pick<
  Scheme,
  "header" | "prefix" | "separator" | "signedText" | "time" | "id" | "deliveryId" | "scope"
>;

/**
 * Options of `signatureProvider`: `header` and what describes the signature in it, or `read`. A value of the wrong type or
 * form is a `TypeError` at set-up. So are options that contradict each other. `tolerance` is 300 000 (5 minutes) by
 * default, and 10 000 for requests that say until when they may be accepted (`expires`).
 */
export interface SignatureProviderOptions extends ToleranceOptions, Partial<Described> {
  /**
   * The provider's name: the first part of every key's scope and of every error message, e.g. `acme`. At least one
   * character.
   */
  readonly name: string;
  /** How the sender signs. */
  readonly algorithm: SignatureAlgorithm;
  /**
   * The key, or several while it is being rotated: each of them is accepted. A secret for HMAC: text stands for its
   * UTF-8. If the sender signs with the bytes behind a hex or base64 text, decode it: `decodeBase64(env.ACME_SECRET)`. For
   * other algorithms the bytes of a public key: `decodePublicKey(env.ACME_PUBLIC_KEY)`.
   */
  readonly key: Key | readonly Key[];
  /**
   * Whether one-way tags of the keys become part of the scope, which keeps the ids of senders with different keys
   * apart. Set it to false only if all senders of this `name` share one key: then a rotation changes no key of
   * the store. Default true.
   */
  readonly tagSecrets?: boolean | undefined;
  /**
   * How the signature in `header` is encoded: hex with digits of either case, base64 with padding, or base64url without.
   * Other spellings are refused. Default `"hex"`.
   */
  readonly encoding?: Encoding | undefined;
  /**
   * For how long the sender retries a delivery, in ms. A `retention` below it is a `RangeError` where the provider is used.
   * An integer of at least 0. Default: not known, and every retention is accepted.
   */
  readonly retries?: number | undefined;
  /**
   * Reads the signed text if `header` and its like cannot say it: over the URL or parts of a form, or as a JWT. Nothing
   * of the request is known to be genuine yet: take no decision here but to refuse it, with a `WebhookVerificationError`,
   * and leave what needs the content to `open`.
   */
  readonly read?: ReadSigned | undefined;
}

/**
 * Makes a provider for a sender of your own: its signature stands in a header, or `read` finds it.
 *
 * `verify` reads the headers, compares the time, checks the signature with each key, a secret's in constant time, and looks
 * into the body only after that.
 *
 * @throws {TypeError} at once: an option is unknown, missing or not of its form, `signedText` contradicts `id` or `time`, or
 * `tolerance` or `now` is given without a time
 * @throws {RangeError} at once: `tolerance` or `retries` is out of range
 *
 * @example
 * // acme-signature: sha256=…, of the time in acme-time, a dot and the body, whose event_id is the event's id
 * const provider = signatureProvider({
 *   name: "acme",
 *   algorithm: "HMAC-SHA256",
 *   key: env.ACME_SECRET,
 *   header: "acme-signature",
 *   prefix: "sha256=",
 *   signedText: "{time}.{body}",
 *   time: { header: "acme-time" },
 *   id: { field: "event_id" },
 * });
 * const { id, timestamp } = await provider.verify(request, body);
 *
 * @example
 * // acme-signature: the Ed25519 signature of the URL and the body, in hex. Not of request.url: nothing separates the two, and
 * // a request would decide where its body begins
 * const provider = signatureProvider({
 *   name: "acme",
 *   algorithm: "Ed25519",
 *   key: decodePublicKey(env.ACME_PUBLIC_KEY),
 *   read: (request, body) => ({
 *     signatures: requireSignature("acme", request, "acme-signature", { decode: decodeHex }),
 *     signed: ["https://shop.example/webhooks/acme", body],
 *   }),
 * });
 */
export function signatureProvider(options: SignatureProviderOptions): WebhookProvider {
  checkOptions("signatureProvider", options, schema, { required: ["name", "algorithm"] });
  checkCombination(options);
  const { name, algorithm, tagSecrets = true, header, encoding = "hex", tolerance, now, retries } = options;
  const keys = checkKeys(options);
  const { read = readerOf(name, { ...options, header: header!, decode: decoders[encoding] }) } = options;
  return verifier({
    name,
    check: signatureCheck(algorithm, keys),
    read,
    tagged: tagSecrets ? keys : [],
    tolerance,
    now,
    retries,
  });
}

/** By encoding. */
export const decoders: Readonly<Record<Encoding, (text: string) => Uint8Array | undefined>> = {
  hex: decodeHex,
  base64: decodeBase64,
  base64url: decodeBase64Url,
};

const headerName = /^[\w!#$%&'*+.^`|~-]+$/;

const described: Schema<Described & Pick<SignatureProviderOptions, "encoding">> = {
  header: text(headerName),
  encoding: text(/^(hex|base64|base64url)$/),
  prefix: typed("string"),
  separator: text(),
  signedText: checkSignedText,
  time: place({ header: text(headerName), entry: text(), field: text() }),
  id: place({ header: texts(headerName), field: text() }),
  deliveryId: texts(headerName),
  scope: typed("function"),
};

const schema: Schema<SignatureProviderOptions> = {
  ...described,
  name: text(),
  algorithm: oneOfAlgorithms,
  key: later,
  tagSecrets: typed("boolean"),
  read: typed("function"),
  retries: milliseconds(0, 2 ** 45),
  tolerance: later,
  now: later,
};

/** A text of this form. Default: any that is not empty. */
function text(form?: RegExp): Check {
  return (option, value) => requireForm(option, value, form);
}

/** One text of this form, or several. */
function texts(form: RegExp): Check {
  return (option, value) => requireForms(option, value, form);
}

function oneOfAlgorithms(option: string, value: unknown): void {
  if (typeof value === "string" && Object.hasOwn(algorithms, value)) return;
  throw new TypeError(`${option} must be one of ${Object.keys(algorithms).join(", ")}`);
}

/** The keys, as a list. The message does not repeat any part of them. */
function checkKeys({ algorithm, key }: SignatureProviderOptions): readonly Key[] {
  const isSecret = algorithms[algorithm].name === "HMAC";
  const form = isSecret ? "a string or a Uint8Array" : "a Uint8Array, as decodePublicKey returns it,";
  return listOf(key).map((one) => {
    if (typeof one === "string") refuseNoise("key", one);
    if (((isSecret && typeof one === "string") || one instanceof Uint8Array) && one.length > 0) return one;
    throw new TypeError(`key must be ${form} that is not empty (is the variable set?)`);
  });
}

/** A place of exactly one kind, as `{ header: "acme-time" }` is. */
function place(kinds: Readonly<Record<string, Check>>): Check {
  return (option, value: unknown) => {
    const given = checkType(option, value, "object") as Record<string, unknown>;
    // Here only the names: which one is given decides what its value is called.
    checkOptions(option, given, Object.fromEntries(Object.keys(kinds).map((kind) => [kind, later])));
    const [kind, ...more] = Object.entries(given).filter(([, name]) => name !== undefined);
    if (!kind || more.length > 0) {
      throw new TypeError(`${option} must have one of ${Object.keys(kinds).join(", ")}`);
    }
    kinds[kind[0]]!(`${option}.${kind[0]}`, kind[1] as never);
  };
}

/**
 * Accepts only templates that can be read in one way: the time has a fixed length, and an id ends at the character
 * behind it. Otherwise parts of a captured delivery could be moved from one field into another, and the signature would
 * still hold.
 */
function checkSignedText(option: string, template: unknown): void {
  const form = /^(?:[^{}]|\{(?:id|time)\})*\{body\}$/;
  if (typeof template !== "string" || !form.test(template) || /(\{\w+\}).*\1/s.test(template)) {
    throw new TypeError(`${option} must end with {body}, with at most one {id} and one {time} before it`);
  }
  if (template.includes("{id}{")) {
    throw new TypeError(`${option} must have a character behind {id} that ends the id`);
  }
}

/** Refuses options that contradict each other. Ignored, each would leave a user less protected than they believe. */
function checkCombination(options: SignatureProviderOptions): void {
  const { header, read, signedText = "", separator, time, id, tolerance, now } = options;
  const coversTime = signedText.includes("{time}");
  const timeInHeaders = (time?.header ?? time?.entry) !== undefined;
  const unread = Object.entries(options).find(
    ([name, value]) => read && value !== undefined && name in described,
  );
  const contradictions: Readonly<Record<string, boolean>> = {
    "header is missing, where the signature stands; or else read, which finds it": !header && !read,
    [`${unread?.[0]} says what read says itself: give one of them`]: unread !== undefined,
    "signedText must contain {time}: a time that is not signed protects from nothing":
      timeInHeaders && !coversTime,
    "signedText contains {time}: time must name a header or an entry": coversTime && !timeInHeaders,
    "signedText contains {id}: id must name a header":
      signedText.includes("{id}") && id?.header === undefined,
    "time.entry needs separator: the signature's header must have entries":
      time?.entry !== undefined && separator === undefined,
    "tolerance and now need time: without it deliveries of any age are accepted":
      !read && time === undefined && (tolerance !== undefined || now !== undefined),
  };
  for (const [message, applies] of Object.entries(contradictions)) if (applies) throw new TypeError(message);
}
