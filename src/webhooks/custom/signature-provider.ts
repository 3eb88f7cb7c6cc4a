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

type Described = Pick<
  Scheme,
  "header" | "prefix" | "separator" | "signedText" | "time" | "id" | "deliveryId" | "scope"
>;

/**
 * Options of `signatureProvider`: `header` and the options that describe its signature, or `read`. `tolerance` is 300
 * 000 (5 minutes) by default, and 10 000 for requests with `expires`.
 */
export interface SignatureProviderOptions extends ToleranceOptions, Partial<Described> {
  /** The first part of every key's scope and of every error message, e.g. `acme`. */
  readonly name: string;
  readonly algorithm: SignatureAlgorithm;
  /**
   * The key, or several while you rotate it: each is accepted. For HMAC a secret: if the sender signs with decoded
   * bytes, pass `decodeBase64(env.ACME_SECRET)`. For others a public key: `decodePublicKey(env.ACME_PUBLIC_KEY)`.
   */
  readonly key: Key | readonly Key[];
  /**
   * Adds one-way tags of the keys to the scope. Set it to false only if all senders of this `name` share one key, so
   * that a rotation changes no key of the store. Default true.
   */
  readonly tagSecrets?: boolean | undefined;
  /** How the signature in `header` is encoded. Default `"hex"`. */
  readonly encoding?: Encoding | undefined;
  /**
   * For how long the sender retries, in ms. A `retention` below it is a `RangeError`. Default: any retention is
   * accepted.
   */
  readonly retries?: number | undefined;
  /**
   * Returns the signed text if `header` cannot describe it, for example with the URL, parts of a form, or a JWT.
   * Nothing is known to be genuine yet: at most refuse the request, and read its content in `open`.
   */
  readonly read?: ReadSigned | undefined;
}

/**
 * Makes a provider for a sender of your own. `verify` looks into the body only after it has checked time and signature.
 *
 * @throws {TypeError} an option is wrong, or options contradict each other
 * @throws {RangeError} `tolerance` or `retries` is out of range
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

function text(form?: RegExp): Check {
  return (option, value) => requireForm(option, value, form);
}

function texts(form: RegExp): Check {
  return (option, value) => requireForms(option, value, form);
}

function oneOfAlgorithms(option: string, value: unknown): void {
  if (typeof value === "string" && Object.hasOwn(algorithms, value)) return;
  throw new TypeError(`${option} must be one of ${Object.keys(algorithms).join(", ")}`);
}

function checkKeys({ algorithm, key }: SignatureProviderOptions): readonly Key[] {
  const isSecret = algorithms[algorithm].name === "HMAC";
  const form = isSecret ? "a string or a Uint8Array" : "a Uint8Array, as decodePublicKey returns it,";
  return listOf(key).map((one) => {
    if (typeof one === "string") refuseNoise("key", one);
    if (((isSecret && typeof one === "string") || one instanceof Uint8Array) && one.length > 0) return one;
    throw new TypeError(`key must be ${form} that is not empty (is the variable set?)`);
  });
}

/** Of exactly one kind, e.g. `{ header: "acme-time" }`. */
function place(kinds: Readonly<Record<string, Check>>): Check {
  return (option, value: unknown) => {
    const given = checkType(option, value, "object") as Record<string, unknown>;
    checkOptions(option, given, Object.fromEntries(Object.keys(kinds).map((kind) => [kind, later])));
    const [kind, ...more] = Object.entries(given).filter(([, name]) => name !== undefined);
    if (!kind || more.length > 0) {
      throw new TypeError(`${option} must have one of ${Object.keys(kinds).join(", ")}`);
    }
    kinds[kind[0]]!(`${option}.${kind[0]}`, kind[1] as never);
  };
}

/**
 * Otherwise parts of a captured delivery could move from one field into another, and the signature would still hold.
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

/** Ignored, each contradiction would leave users less protected than they believe. */
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
