import { bodyHash } from "./body.ts";
import { isId } from "./header.ts";
import { requireForm } from "./option-checks.ts";
import type { ToleranceOptions } from "./options.ts";
import { badSignature, noneOfTheKeys, type WebhookProvider, WebhookVerificationError } from "./provider.ts";
import { type Key, type SignatureCheck, type SignedParts, secretTag } from "./signature-check.ts";
import { toleranceCheck } from "./tolerance.ts";

/** A request's signature and signed text, not verified yet. */
export interface SignedRequest {
  /** One that holds is enough. */
  readonly signatures: readonly Uint8Array[];
  readonly signed: SignedParts;
  /** The URL among `signed`, for the message of a bad signature. Default none. */
  readonly url?: string | undefined;
  /** In ms since 1970. Default: no time is signed, and deliveries of any age are accepted. */
  readonly timestamp?: number | undefined;
  /**
   * In ms since 1970. The delivery is accepted from `timestamp` to `expires`, and `tolerance` is how far the clocks may
   * differ. Default: `timestamp`.
   */
  readonly expires?: number | undefined;
  /** 1 to 255 visible ASCII characters. Default: the hash of the body. */
  readonly id?: string | undefined;
  /** Default true. */
  readonly idSigned?: boolean | undefined;
  /** Names within which the id is unique. Default none. */
  readonly scope?: readonly string[] | undefined;
  /** For logs. Default none. */
  readonly deliveryId?: string | undefined;
  /**
   * Looks into the signed text, after the signature was verified. Its result replaces the fields above. Throw a
   * `WebhookVerificationError` to refuse the delivery.
   */
  readonly open?: (() => SignedContent | Promise<SignedContent>) | undefined;
}

/** The fields that `open` reads. */
export type SignedContent = Pick<SignedRequest, "timestamp" | "expires" | "id" | "scope">;

/** Reads the signed text. Nothing of the request is known to be genuine yet. */
export type ReadSigned = (request: Request, body: Uint8Array) => SignedRequest | Promise<SignedRequest>;

export interface VerifierOptions extends ToleranceOptions {
  readonly name: string;
  readonly check: SignatureCheck;
  readonly read: ReadSigned;
  /** Empty if the name alone keeps this sender's ids apart. */
  readonly tagged: readonly Key[];
  readonly defaultTolerance?: number | undefined;
  readonly anyFuture?: boolean | undefined;
  readonly maxBody?: number | undefined;
  readonly retries?: number | undefined;
}

/** redlock-edge/testing signs by `read`, too. */
export interface Verifier extends WebhookProvider {
  /** @internal */
  readonly read: ReadSigned;
}

export function verifier(options: VerifierOptions): Verifier {
  const { check, read, tagged, maxBody, retries } = options;
  const name = requireForm("name", options.name);
  const checkTolerance = toleranceCheck(name, options, options.defaultTolerance, options.anyFuture);
  // Not a promise of them, which belongs to its request.
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

/** A body that was read as text or parsed would fail as a bad signature that nobody can explain. */
function requireBytes(body: unknown): void {
  if (!(body instanceof Uint8Array)) {
    throw new TypeError(`body must be the request's bytes as a Uint8Array, not ${typeof body}`);
  }
}
