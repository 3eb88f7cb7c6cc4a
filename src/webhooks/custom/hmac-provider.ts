import { type Check, checkOptions, checkType, later, type Schema, typed } from "../../check.ts";
import { decodeBase64, decodeBase64Url, decodeHex, type Encoding } from "../encoding.ts";
import type { WebhookProvider } from "../provider.ts";
import { readerOf, type Scheme } from "../scheme.ts";
import type { Key } from "../signature-check.ts";
import { keys, text, texts } from "./checks.ts";
import { type SignatureProviderOptions, signatureProvider } from "./signature-provider.ts";

/**
 * Options of `hmacProvider`. A value of the wrong type or form is a `TypeError` at set-up; so are `tolerance` and
 * `now` without `time`.
 */
export interface HmacProviderOptions
  extends Omit<SignatureProviderOptions, "algorithm" | "key" | "read">,
    Pick<Scheme, "header" | "prefix" | "separator" | "signedText" | "time" | "id" | "deliveryId" | "scope"> {
  /**
   * The secret, or several while it is being rotated: each of them is accepted. A string stands for its UTF-8. If the
   * sender signs with the bytes behind a hex or base64 text, decode it: `decodeBase64(env.ACME_SECRET)`. At least one,
   * none of them empty.
   */
  readonly secret: Key | readonly Key[];
  /** The HMAC's hash. Default `"HMAC-SHA256"`. */
  readonly algorithm?: "HMAC-SHA1" | "HMAC-SHA256" | "HMAC-SHA512" | undefined;
  /**
   * How the signature is encoded. Only the canonical spelling is accepted: lower-case hex, base64 with padding,
   * base64url without. Default `"hex"`.
   */
  readonly encoding?: Encoding | undefined;
}

const decoders = { hex: decodeHex, base64: decodeBase64, base64url: decodeBase64Url };

/**
 * Makes a provider for a sender that signs with an HMAC and a shared secret, and puts the signature into a header.
 *
 * `verify` reads the headers, compares the time, checks the signature in constant time with each secret, and looks
 * into the body only after that. For a sender that signs in another way (with a private key, the URL, text behind the
 * body) see `signatureProvider`.
 *
 * @throws {TypeError} at once: an option is unknown, missing or not of its form; `signedText` contradicts `id` or
 * `time`; `tolerance` or `now` is given without `time`
 * @throws {RangeError} at once: `tolerance` is out of range
 *
 * @example
 * // acme-signature: sha256=…, of the time in acme-time, a dot and the body, whose event_id is the event's id
 * const provider = hmacProvider({
 *   name: "acme",
 *   secret: env.ACME_SECRET,
 *   header: "acme-signature",
 *   prefix: "sha256=",
 *   signedText: "{time}.{body}",
 *   time: { header: "acme-time" },
 *   id: { field: "event_id" },
 * });
 * const { id, timestamp } = await provider.verify(request, body);
 */
export function hmacProvider(options: HmacProviderOptions): WebhookProvider {
  checkOptions("hmacProvider", options, schema, { required: ["name", "secret", "header"] });
  checkCombination(options);
  const { name, secret, tagSecrets, algorithm = "HMAC-SHA256", encoding = "hex", tolerance, now } = options;
  const read = readerOf(name, { ...options, decode: decoders[encoding] });
  return signatureProvider({ name, algorithm, key: secret, tagSecrets, tolerance, now, read });
}

const headerName = /^[\w!#$%&'*+.^`|~-]+$/;

const schema: Schema<HmacProviderOptions> = {
  name: text(),
  secret: keys(true),
  tagSecrets: typed("boolean"),
  header: text(headerName),
  algorithm: text(/^HMAC-SHA(1|256|512)$/),
  encoding: text(/^(hex|base64|base64url)$/),
  prefix: typed("string"),
  separator: text(),
  signedText: checkSignedText,
  time: place({ header: text(headerName), entry: text(), field: text() }),
  id: place({ header: texts(headerName), field: text() }),
  deliveryId: texts(headerName),
  scope: typed("function"),
  tolerance: later,
  now: later,
};

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
function checkCombination(options: HmacProviderOptions): void {
  const { signedText = "", separator, time, id, tolerance, now } = options;
  const coversTime = signedText.includes("{time}");
  const timeInHeaders = (time?.header ?? time?.entry) !== undefined;
  const contradictions: Readonly<Record<string, boolean>> = {
    "signedText must contain {time}: a time that is not signed protects from nothing":
      timeInHeaders && !coversTime,
    "signedText contains {time}: time must name a header or an entry": coversTime && !timeInHeaders,
    "signedText contains {id}: id must name a header":
      signedText.includes("{id}") && id?.header === undefined,
    "time.entry needs separator: the signature's header must have entries":
      time?.entry !== undefined && separator === undefined,
    "tolerance and now need time: without it deliveries of any age are accepted":
      time === undefined && (tolerance !== undefined || now !== undefined),
  };
  for (const [message, applies] of Object.entries(contradictions)) if (applies) throw new TypeError(message);
}
