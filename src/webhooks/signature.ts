import { malformed, requireHeader, WebhookVerificationError } from "./provider.ts";

/** Whether any of the keys made any of the signatures for this body, with `before` (UTF-8) in front of it. */
export type SignatureCheck = (
  signatures: readonly Uint8Array[],
  body: Uint8Array,
  before?: string,
) => Promise<boolean>;

/**
 * The most signatures that are looked at. Each costs one pass over the body for each key, and only two or
 * three are ever sent: a bound keeps a header full of them from buying as many passes.
 */
export const mostSignatures = 16;

/**
 * A check with one or several keys, several while a secret is being rotated. The comparison is the
 * platform's (`crypto.subtle.verify`), which takes the same time wherever the signatures differ. Keys are
 * secrets for HMAC-SHA256, 32 bytes for Ed25519; a string stands for its UTF-8.
 *
 * @throws {TypeError} at once, when there is no key or an empty one: everybody knows that.
 *
 * @example
 * const signed = signatureCheck("HMAC-SHA256", [env.ACME_SECRET]);
 * if (!(await signed([signature], body, `${seconds}.`))) throw …
 */
export function signatureCheck(
  scheme: "HMAC-SHA256" | "Ed25519",
  keys: readonly (string | Uint8Array)[],
): SignatureCheck {
  if (keys.length === 0 || !keys.every((key) => key?.length > 0)) {
    throw new TypeError("keys must not be empty (is the variable set?)");
  }
  const algorithm = scheme === "Ed25519" ? { name: scheme } : { name: "HMAC", hash: "SHA-256" };
  // The keys are kept, not the promise of them: a promise made by one request must not be awaited by
  // another (Workers may end the first one's request, and with it its promise, at any time).
  let imported: readonly CryptoKey[] | undefined;

  return async (signatures, body, before) => {
    if (signatures.length === 0) return false;
    imported ??= await Promise.all(
      keys.map((key) =>
        crypto.subtle.importKey(
          "raw",
          owned(typeof key === "string" ? new TextEncoder().encode(key) : key),
          algorithm,
          false,
          ["verify"],
        ),
      ),
    );
    const message = owned(before ? joined(before, body) : body);
    for (const key of imported) {
      for (const signature of signatures) {
        if (await crypto.subtle.verify(algorithm.name, key, owned(signature), message)) return true;
      }
    }
    return false;
  };
}

/** The signatures of one scheme among the entries of a header; what is not `length` bytes is passed over. */
export function signaturesOf(
  entries: readonly string[],
  scheme: string,
  decode: (text: string) => Uint8Array | undefined,
  length: number,
): readonly Uint8Array[] {
  return entries.flatMap((entry) => {
    const bytes = entry.startsWith(scheme) ? decode(entry.slice(scheme.length)) : undefined;
    return bytes?.length === length ? [bytes] : [];
  });
}

/**
 * The signature of a header that carries just one, behind its scheme.
 *
 * @throws {WebhookVerificationError} `missing-header`, or `malformed-header` when it has not `length` bytes.
 */
export function requireSignature(
  provider: string,
  request: Request,
  header: string,
  scheme: string,
  decode: (text: string) => Uint8Array | undefined,
  length: number,
): readonly Uint8Array[] {
  const signatures = signaturesOf([requireHeader(provider, request, header)], scheme, decode, length);
  if (signatures.length === 0) throw malformed(provider, header, `is not ${scheme} and ${length} bytes`);
  return signatures;
}

/** What a signature that does not hold is refused with. */
export function badSignature(provider: string): WebhookVerificationError {
  return new WebhookVerificationError(provider, "bad-signature", "none of the keys made this signature");
}

/** The bytes of lower-case hex, or `undefined` for anything else. */
export function decodeHex(text: string): Uint8Array | undefined {
  if (!/^(?:[0-9a-f]{2})*$/.test(text)) return undefined;
  return Uint8Array.from(text.match(/../g) ?? [], (digits) => Number.parseInt(digits, 16));
}

/** The bytes of canonical base64 (standard alphabet, padded), or `undefined` for anything else. */
export function decodeBase64(text: string): Uint8Array | undefined {
  const form = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
  if (!form.test(text)) return undefined;
  const binary = atob(text);
  // atob ignores the bits left over before the padding, which would give one signature several spellings.
  if (btoa(binary) !== text) return undefined;
  return Uint8Array.from(binary, (character) => character.charCodeAt(0));
}

function joined(before: string, body: Uint8Array): Uint8Array {
  const head = new TextEncoder().encode(before);
  const message = new Uint8Array(head.length + body.length);
  message.set(head);
  message.set(body, head.length);
  return message;
}

/** The same bytes, narrowed to what newer type libraries ask for: they must not be shared memory. */
function owned(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes as Uint8Array<ArrayBuffer>;
}
