import { type CanonicalOptions, canonicalJson, checkCanonicalOptions } from "../idempotency/canonical.ts";
import { parseExactJson } from "../idempotency/exact-json.ts";
import { concatBytes } from "../runtime/bytes.ts";

/** Returns the text that must be equal whenever a key is used again. Undefined: nothing. */
export type Fingerprint = (
  request: Request,
  body: Uint8Array,
) => string | Uint8Array | undefined | Promise<string | Uint8Array | undefined>;

/** The parts of a request that a retry repeats: method, path with query, and body. */
export function requestFingerprint({ method, url, headers }: Request, body: Uint8Array): Uint8Array {
  const { pathname, search } = new URL(url);
  // The first two contain no line feed, so the parts cannot be confused.
  const head = new TextEncoder().encode(`${method}\n${pathname}${search}\n`);
  return concatBytes([head, withoutBoundary(headers.get("content-type") ?? "", body)]);
}

/**
 * A form's body without the text between its parts, which clients draw anew for each attempt. Any other body is returned
 * unchanged. So is one whose boundary is longer than RFC 2046 allows: to look for that could take seconds.
 */
function withoutBoundary(contentType: string, body: Uint8Array): Uint8Array {
  const [, quoted, bare] =
    /^multipart\/[^;]+;.*?\bboundary=(?:"([^"]{1,70})"|([^\s;"]{1,70})(?:[\s;]|$))/i.exec(contentType) ?? [];
  const boundary = quoted ?? bare;
  if (!boundary) return body;
  // A character per byte. The parts' lengths keep two forms apart whose contents imitate a boundary.
  const parts = new TextDecoder("latin1").decode(body).split(`--${boundary}`);
  return new TextEncoder().encode(parts.map((part) => `${part.length}:${part}`).join(""));
}

/**
 * A `fingerprint` for routes that take JSON: method, path with query, and the content of the body, regardless of the order of
 * its members and its white space. A body that is no JSON, that has a member twice, or that RFC 8785 refuses, counts byte for
 * byte. A number that JavaScript cannot hold exactly, for example 9007199254740993, counts as it is written.
 *
 * @param options `exclude`: members that a retry writes anew. For the others, see {@link CanonicalOptions}
 * @throws TypeError | RangeError where the options are wrong
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
    // This covers deep nesting, too: a client's body must not become an error of the server.
    return body;
  }
}
