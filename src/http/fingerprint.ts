import { type CanonicalOptions, canonicalJson, checkCanonicalOptions } from "../idempotency/canonical.ts";
import { parseExactJson } from "../idempotency/exact-json.ts";
import { concatBytes } from "../runtime/bytes.ts";

/** Returns the text that must be equal whenever a key is used again, or undefined to compare nothing. */
export type Fingerprint = (
  request: Request,
  body: Uint8Array,
) => string | Uint8Array | undefined | Promise<string | Uint8Array | undefined>;

export function requestFingerprint({ method, url, headers }: Request, body: Uint8Array): Uint8Array {
  const { pathname, search } = new URL(url);
  const head = new TextEncoder().encode(`${method}\n${pathname}${search}\n`);
  return concatBytes([head, withoutBoundary(headers.get("content-type") ?? "", body)]);
}

/**
 * Clients draw boundaries anew for each attempt. One that is longer than RFC 2046 allows stays, because looking for it
 * could take seconds.
 */
function withoutBoundary(contentType: string, body: Uint8Array): Uint8Array {
  const [, quoted, bare] =
    /^multipart\/[^;]+;.*?\bboundary=(?:"([^"]{1,70})"|([^\s;"]{1,70})(?:[\s;]|$))/i.exec(contentType) ?? [];
  const boundary = quoted ?? bare;
  if (!boundary) return body;
  // One character per byte. Lengths keep apart two forms whose contents imitate a boundary.
  const parts = new TextDecoder("latin1").decode(body).split(`--${boundary}`);
  return new TextEncoder().encode(parts.map((part) => `${part.length}:${part}`).join(""));
}

/**
 * A `fingerprint` for JSON: method, path with query, and the body's content, in any order of members. A body that is no
 * JSON, has a member twice, or is refused by RFC 8785 counts byte for byte.
 *
 * @param options `exclude`: members that a retry writes anew. See {@link CanonicalOptions}
 * @throws TypeError | RangeError an option is wrong
 *
 * @example
 * idempotent({ redlock, fingerprint: jsonFingerprint({ exclude: ["timestamp", "client.attempt"] }) });
 */
export function jsonFingerprint(options: CanonicalOptions = {}): Fingerprint {
  const { exclude } = checkCanonicalOptions("jsonFingerprint", options);
  return (request, body) => requestFingerprint(request, canonicalBody(body, exclude));
}

function canonicalBody(body: Uint8Array, exclude: readonly string[] | undefined): Uint8Array {
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: false }).decode(body);
    return new TextEncoder().encode(canonicalJson("body", parseExactJson(text), exclude));
  } catch {
    // Deep nesting must not become a server error.
    return body;
  }
}
