import { jsonFields } from "./body.ts";
import { decodeBase64Url } from "./encoding.ts";
import { malformed, requireHeader } from "./header.ts";
import { badSignature, nameUrl } from "./provider.ts";
import type { SignedContent } from "./verifier.ts";

/** In characters. It is decoded before its signature is checked. */
const longest = 8_192;

/** A JWT that is not verified yet. */
export interface SignedJwt {
  readonly signatures: readonly Uint8Array[];
  readonly signed: string;
  /**
   * Compares claims, with one text or several allowed ones, and returns `nbf` and `exp`. Call it in `open`, after the
   * signature was verified.
   *
   * @throws {WebhookVerificationError} `bad-signature`: another algorithm, or a claim differs
   */
  open(expected: Readonly<Record<string, string | readonly string[]>>): SignedContent;
}

/**
 * Reads the JWT in a header. You choose the algorithm: a JWT that names another one is refused.
 *
 * @param alg for example `HS256`
 * @throws {WebhookVerificationError} `missing-header`, or `malformed-header`, also above 8 192 characters
 *
 * @example
 * const { signatures, signed, open } = requireJwt("acme", request, "acme-token", "HS256");
 * return { signatures, signed, open: () => open({ iss: "acme" }) };
 */
export function requireJwt(provider: string, request: Request, header: string, alg: string): SignedJwt {
  const token = requireHeader(provider, request, header);
  const parts = token.length > longest ? [] : token.split(".", 4);
  const [head, payload, signature] = parts.length === 3 ? parts.map(decodeBase64Url) : [];
  if (!head?.length || !payload?.length || !signature?.length) {
    throw malformed(provider, header, "is not a JWT");
  }
  return {
    signatures: [signature],
    signed: `${parts[0]}.${parts[1]}`,
    open(expected) {
      const { alg: given, crit } = jsonFields(head);
      if (given !== alg || crit !== undefined)
        throw badSignature(provider, "the JWT is for another algorithm");
      const claims = jsonFields(payload);
      for (const [claim, texts] of Object.entries(expected)) {
        if (![texts].flat().some((text) => text === claims[claim])) {
          const url = [texts].flat().find((text) => /^https?:/.test(text));
          const from = url === undefined ? "" : ` from ${nameUrl(url)}`;
          throw badSignature(provider, `the JWT's claim ${claim} differs${from}`);
        }
      }
      const { nbf, exp } = claims;
      return { timestamp: time(nbf), expires: time(exp) };
    },
  };
}

/** NaN, which no tolerance accepts, for anything but a number. */
function time(seconds: unknown): number {
  return typeof seconds === "number" ? seconds * 1_000 : Number.NaN;
}
