import { bodyHash } from "./body.ts";
import { isId } from "./header.ts";
import { requireForm } from "./option-checks.ts";
import type { ToleranceOptions } from "./options.ts";
import { badSignature, noneOfTheKeys, type WebhookProvider, WebhookVerificationError } from "./provider.ts";
import { type Key, type SignatureCheck, type SignedParts, secretTag } from "./signature-check.ts";
import { toleranceCheck } from "./tolerance.ts";

/** The signed text according to the request, before it is known whether it was. */
export interface SignedRequest {
  /** The signatures. One that holds is enough. */
  readonly signatures: readonly Uint8Array[];
  /** The bytes that they cover: one after the other, text as UTF-8. */
  readonly signed: SignedParts;
  /** The URL among `signed`. The message for a bad signature names it, without the values in its query. Default none. */
  readonly url?: string | undefined;
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
   * Looks into the signed text. Called only after the signature was verified. Its result replaces the fields above.
   * Throw a `WebhookVerificationError` to refuse the delivery.
   */
  readonly open?: (() => SignedContent | Promise<SignedContent>) | undefined;
}

/** Fields of the signed content, and the reason for a refusal that only a genuine delivery gets. */
export type SignedContent = Pick<SignedRequest, "timestamp" | "expires" | "id" | "scope">;

/** Reads the signed text. Nothing of the request is known to be genuine yet. */
export type ReadSigned = (request: Request, body: Uint8Array) => SignedRequest | Promise<SignedRequest>;

/** The parts that verify a sender's deliveries. */
export interface VerifierOptions extends ToleranceOptions {
  readonly name: string;
  readonly check: SignatureCheck;
  readonly read: ReadSigned;
  /** The keys whose tags tell this sender's ids from the ids of others. None if the name does. */
  readonly tagged: readonly Key[];
  /** The tolerance, in ms, if the options have none. */
  readonly defaultTolerance?: number | undefined;
  /** Times in the future are not compared. */
  readonly anyFuture?: boolean | undefined;
  readonly maxBody?: number | undefined;
  readonly retries?: number | undefined;
}

/** A provider of this package. It also says how its sender signs, without any key: redlock-edge/testing signs so, too. */
export interface Verifier extends WebhookProvider {
  /** @internal */
  readonly read: ReadSigned;
}

/**
 * Makes a provider: reads the signed text, compares its time, checks the signature, and only then looks into it. All
 * senders end here.
 *
 * @throws {TypeError} `name` is empty, or `now` is not a function
 * @throws {RangeError} `tolerance` is out of range
 */
export function verifier(options: VerifierOptions): Verifier {
  const { check, read, tagged, maxBody, retries } = options;
  const name = requireForm("name", options.name);
  const checkTolerance = toleranceCheck(name, options, options.defaultTolerance, options.anyFuture);
  // The tags are kept, not the promise of them, which belongs to the request that made it.
  let secretTags: readonly string[] | undefined;

  function checkTime({ timestamp, expires }: SignedContent): void {
    if (timestamp !== undefined || expires !== undefined) checkTolerance(timestamp ?? Number.NaN, expires);
  }

  return {
    name,
    maxBody,
    retries,
    read,
    async verify(request, body) {
      requireBytes(body);
      const { signatures, signed, url, open, ...claims } = await read(request, body);
      checkTime(claims);
      if (!(await check(signatures, signed))) throw badSignature(name, noneOfTheKeys(url));

      const content = await open?.();
      if (content) checkTime(content);
      const { timestamp = claims.timestamp, id = claims.id ?? (await bodyHash(body)) } = content ?? {};
      const { scope = claims.scope } = content ?? {};
      const { idSigned = true, deliveryId } = claims;
      if (!isId(id)) {
        const why = "the id does not have the form of an id";
        throw new WebhookVerificationError(name, "malformed-header", why);
      }
      if (tagged.length > 0) secretTags ??= await Promise.all(tagged.map(secretTag));
      return {
        id,
        idSigned,
        ...(timestamp !== undefined && { timestamp }),
        ...(scope && { scope }),
        ...(deliveryId !== undefined && { deliveryId }),
        ...(secretTags && { secretTags }),
      };
    },
  };
}

/**
 * Refuses a body that is not bytes. A body that was read as text, or parsed and serialized again, is not the text that the
 * sender signed, and would fail as a bad signature that nobody can explain.
 */
function requireBytes(body: unknown): void {
  if (!(body instanceof Uint8Array)) {
    throw new TypeError(`body must be the request's bytes as a Uint8Array, not ${typeof body}`);
  }
}
