import { checkOptions, later, type Schema, typed } from "../../check.ts";
import type { ToleranceOptions } from "../options.ts";
import type { WebhookProvider } from "../provider.ts";
import { algorithms, type Key, type SignatureAlgorithm, signatureCheck } from "../signature-check.ts";
import { type ReadSigned, verifier } from "../verifier.ts";
import { keys as keysCheck, text } from "./checks.ts";

/**
 * Options of `signatureProvider`. A value of the wrong type or form is a `TypeError` at set-up. `tolerance` is 300 000
 * (5 minutes) by default, and 10 000 for requests that say until when they may be accepted (`expires`).
 */
export interface SignatureProviderOptions extends ToleranceOptions {
  /**
   * The provider's name: the first part of every key's scope and of every error message, e.g. `acme`. At least one
   * character.
   */
  readonly name: string;
  /** How the sender signs. */
  readonly algorithm: SignatureAlgorithm;
  /**
   * The key, or several while it is being rotated: each of them is accepted. A secret for HMAC: text stands for its
   * UTF-8. For other algorithms the bytes of a public key: `decodePublicKey(env.ACME_PUBLIC_KEY)`.
   */
  readonly key: Key | readonly Key[];
  /**
   * Whether one-way tags of the keys become part of the scope, which keeps the ids of senders with different keys
   * apart. Set it to false only if all senders of this `name` share one key: then a rotation changes no key of
   * the store. Default true.
   */
  readonly tagSecrets?: boolean | undefined;
  /**
   * Reads what was signed. Nothing of the request is known to be genuine yet: take no decision here but to refuse it,
   * with a `WebhookVerificationError`, and leave what needs the content to `open`.
   */
  readonly read: ReadSigned;
}

/**
 * Makes a provider for a sender whose signature `hmacProvider` cannot describe: made with a private key, over the URL
 * or parts of a form, or as a JWT. `read` says what was signed; the rest is done here: the time is compared, the
 * signature checked in constant time with each key, and `open` called only after that.
 *
 * @throws {TypeError} at once: an option is unknown, missing or not of its form
 * @throws {RangeError} at once: `tolerance` is out of range
 *
 * @example
 * // acme-signature: the Ed25519 signature of the URL and the body, in hex
 * const provider = signatureProvider({
 *   name: "acme",
 *   algorithm: "Ed25519",
 *   key: decodePublicKey(env.ACME_PUBLIC_KEY),
 *   read: (request, body) => ({
 *     signatures: requireSignature("acme", request, "acme-signature", { decode: decodeHex }),
 *     signed: [request.url, body],
 *   }),
 * });
 */
export function signatureProvider(options: SignatureProviderOptions): WebhookProvider {
  checkOptions("signatureProvider", options, schema, { required: ["name", "algorithm", "read"] });
  const { name, algorithm, key, tagSecrets = true, read, tolerance, now } = options;
  keysCheck(algorithms[algorithm].name === "HMAC")("key", key as never);
  const keys = typeof key === "string" || key instanceof Uint8Array ? [key] : key;
  return verifier({
    name,
    check: signatureCheck(algorithm, keys),
    read,
    tagged: tagSecrets ? keys : [],
    tolerance,
    now,
  });
}

const schema: Schema<SignatureProviderOptions> = {
  name: text(),
  algorithm: oneOfAlgorithms,
  key: later,
  tagSecrets: typed("boolean"),
  read: typed("function"),
  tolerance: later,
  now: later,
};

function oneOfAlgorithms(option: string, value: unknown): void {
  if (typeof value === "string" && Object.hasOwn(algorithms, value)) return;
  throw new TypeError(`${option} must be one of ${Object.keys(algorithms).join(", ")}`);
}
