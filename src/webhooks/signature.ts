/** Whether any of the keys made any of the signatures for this message. */
export type SignatureCheck = (signatures: readonly Uint8Array[], message: Uint8Array) => Promise<boolean>;

/**
 * A check with one or several keys, several while a secret is being rotated. The comparison is the
 * platform's (`crypto.subtle.verify`), which takes the same time wherever the signatures differ.
 *
 * @example
 * const signed = signatureCheck({ name: "HMAC", hash: "SHA-256" }, [new TextEncoder().encode(secret)]);
 * if (!(await signed([signature], body))) throw …
 */
export function signatureCheck(
  algorithm: { readonly name: "HMAC"; readonly hash: "SHA-256" } | { readonly name: "Ed25519" },
  rawKeys: readonly Uint8Array[],
): SignatureCheck {
  // The keys are kept, not the promise of them: a promise made by one request must not be awaited by
  // another (Workers may end the first one's request, and with it its promise, at any time).
  let keys: readonly CryptoKey[] | undefined;

  return async (signatures, message) => {
    keys ??= await Promise.all(
      rawKeys.map((raw) => crypto.subtle.importKey("raw", owned(raw), algorithm, false, ["verify"])),
    );
    for (const key of keys) {
      for (const signature of signatures) {
        if (await crypto.subtle.verify(algorithm.name, key, owned(signature), owned(message))) return true;
      }
    }
    return false;
  };
}

/** The bytes of lower-case hex, or `undefined` for anything else. */
export function decodeHex(text: string): Uint8Array | undefined {
  if (!/^(?:[0-9a-f]{2})*$/.test(text)) return undefined;
  const bytes = new Uint8Array(text.length / 2);
  for (let index = 0; index < bytes.length; index++) {
    bytes[index] = Number.parseInt(text.slice(index * 2, index * 2 + 2), 16);
  }
  return bytes;
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

/** The same bytes, narrowed to what newer type libraries ask for: they must not be shared memory. */
function owned(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes as Uint8Array<ArrayBuffer>;
}
