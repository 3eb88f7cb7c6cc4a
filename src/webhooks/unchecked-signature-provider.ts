import { concatBytes } from "../bytes.ts";
import { bodyHash } from "./body.ts";
import { isId } from "./header.ts";
import { requireForm } from "./option.ts";
import { requireBytes, type WebhookProvider, WebhookVerificationError } from "./provider.ts";
import { secretTags } from "./secret-tag.ts";
import { badSignature, signatureCheck } from "./signature.ts";
import type { SignatureProviderOptions, SignedRequest } from "./signature-options.ts";
import { toleranceCheck } from "./tolerance.ts";

/**
 * `signatureProvider` without the checks of how a sender signs. The built-in senders use it: a bundle with one of them
 * then leaves those checks out. What their users give is checked here.
 *
 * @param fallback the tolerance, in ms, if the options have none
 * @throws {TypeError} `name` or a key is empty, or `now` is not a function
 * @throws {RangeError} `tolerance` is out of range
 */
export function uncheckedSignatureProvider(
  options: SignatureProviderOptions,
  fallback?: number,
): WebhookProvider {
  const { algorithm, key, tagSecrets = true, read } = options;
  const name = requireForm("name", options.name);
  const keys = typeof key === "string" || key instanceof Uint8Array ? [key] : key;
  const check = signatureCheck(algorithm, keys);
  const tags = secretTags(tagSecrets, keys);
  const checkTolerance = toleranceCheck(name, options, fallback);

  function checkTime({ timestamp, expires }: Pick<SignedRequest, "timestamp" | "expires">): void {
    if (timestamp !== undefined || expires !== undefined) checkTolerance(timestamp ?? Number.NaN, expires);
  }

  return {
    name,
    async verify(request, body) {
      requireBytes(body);
      const { signatures, signed, open, ...claims } = await read(request, body);
      checkTime(claims);
      if (!(await check(signatures, joined(signed)))) throw badSignature(name);

      const content = await open?.();
      if (content) checkTime(content);
      const { timestamp = claims.timestamp, id = claims.id ?? (await bodyHash(body)) } = content ?? {};
      const { idSigned = true, scope, deliveryId } = claims;
      if (!isId(id))
        throw new WebhookVerificationError(
          name,
          "malformed-header",
          "the id does not have the form of an id",
        );
      return {
        id,
        idSigned,
        ...(timestamp !== undefined && { timestamp }),
        ...(scope && { scope }),
        ...(deliveryId !== undefined && { deliveryId }),
        ...(await tags()),
      };
    },
  };
}

/** What was signed, as one array. A single one is not copied: bodies may be large. */
function joined(signed: SignedRequest["signed"]): Uint8Array {
  const parts = typeof signed === "string" || signed instanceof Uint8Array ? [signed] : signed;
  // Stryker disable next-line MethodExpression: empty parts add nothing
  const bytes = parts
    .map((part) => (typeof part === "string" ? new TextEncoder().encode(part) : part))
    .filter(({ length }) => length);
  // Stryker disable next-line ConditionalExpression: a copy has the same bytes
  return bytes.length === 1 ? bytes[0]! : concatBytes(bytes);
}
