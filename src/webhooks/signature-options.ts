import { checkNames, checkType } from "../check.ts";
import { algorithms, type SignatureAlgorithm } from "./algorithm.ts";
import { listOf, requireForm } from "./option.ts";
import type { ToleranceOptions } from "./tolerance.ts";

/** What a request says was signed, before it is known whether it was. */
export interface SignedRequest {
  /** The signatures; one that holds is enough. */
  readonly signatures: readonly Uint8Array[];
  /** What they cover: one after the other, text as UTF-8. */
  readonly signed: string | Uint8Array | readonly (string | Uint8Array)[];
  /** The signed time, in ms since 1970. Default: none, and deliveries of any age are accepted. */
  readonly timestamp?: number | undefined;
  /**
   * Until when the sender lets the delivery be accepted, in ms since 1970. The delivery is then accepted from
   * `timestamp` to `expires`, and `tolerance` is how far the clocks may differ. Default: `timestamp`.
   */
  readonly expires?: number | undefined;
  /** The event's id, 1 … 255 visible ASCII characters. Default: the hash of the body. */
  readonly id?: string | undefined;
  /** Whether `signed` contains the id. Default true. */
  readonly idSigned?: boolean | undefined;
  /** Names that the id is unique within. Default none. */
  readonly scope?: readonly string[] | undefined;
  /** The sender's name for the delivery, for logs. Default none. */
  readonly deliveryId?: string | undefined;
  /**
   * Looks into what was signed. Called only after the signature was verified; what it returns replaces what is above.
   * Throw a `WebhookVerificationError` to refuse the delivery.
   */
  readonly open?: (() => SignedContent | Promise<SignedContent>) | undefined;
}

/** What stands in signed content. */
export type SignedContent = Pick<SignedRequest, "timestamp" | "expires" | "id">;

/**
 * Options of `signatureProvider`. A value of the wrong type or form is a `TypeError` at set-up. `tolerance` is 300 000
 * (5 minutes) by default, and 10 000 for requests that say until when they may be accepted (`expires`).
 */
export interface SignatureProviderOptions extends ToleranceOptions {
  /** The provider's name: the first part of every key's scope and of every error message. At least one character. */
  readonly name: string;
  /** How the sender signs. */
  readonly algorithm: SignatureAlgorithm;
  /**
   * The key, or several while it is being rotated: each of them is accepted. A secret for HMAC: text stands for its
   * UTF-8. For other algorithms the bytes of a public key: `decodePublicKey(env.ACME_PUBLIC_KEY)`.
   */
  readonly key: string | Uint8Array | readonly (string | Uint8Array)[];
  /**
   * Whether one-way tags of the keys become part of the scope, which keeps the ids of senders with different keys
   * apart. Set it to false only if all senders of this `name` share one key. Default true.
   */
  readonly tagSecrets?: boolean | undefined;
  /**
   * Reads what was signed. Nothing of the request is known to be genuine yet: take no decision here but to refuse it,
   * with a `WebhookVerificationError`, and leave what needs the content to `open`.
   */
  readonly read: (request: Request, body: Uint8Array) => SignedRequest | Promise<SignedRequest>;
}

const optionNames: Readonly<Record<keyof SignatureProviderOptions, 1>> = {
  name: 1,
  algorithm: 1,
  key: 1,
  tagSecrets: 1,
  read: 1,
  tolerance: 1,
  now: 1,
};

/**
 * Checks all options but `tolerance` and `now`, which are checked with the tolerance.
 *
 * @throws {TypeError} an option is unknown, missing or not of its form
 */
export function checkSignatureOptions(options: SignatureProviderOptions): void {
  checkNames("signatureProvider", options, optionNames);
  const { algorithm, tagSecrets } = options;
  requireForm("name", options.name);
  if (typeof algorithm !== "string" || !Object.hasOwn(algorithms, algorithm)) {
    throw new TypeError(`algorithm must be one of ${Object.keys(algorithms).join(", ")}`);
  }
  for (const key of listOf(options.key)) checkKey(algorithm, key);
  if (tagSecrets !== undefined) checkType("tagSecrets", tagSecrets, "boolean");
  checkType("read", options.read, "function");
}

/** The message does not repeat any part of the key. */
function checkKey(algorithm: SignatureAlgorithm, key: unknown): void {
  const isSecret = algorithms[algorithm].name === "HMAC";
  if (((isSecret && typeof key === "string") || key instanceof Uint8Array) && key.length > 0) return;
  const form = isSecret ? "a string or a Uint8Array" : "a Uint8Array, as decodePublicKey returns it,";
  throw new TypeError(`key must be ${form} that is not empty (is the variable set?)`);
}
