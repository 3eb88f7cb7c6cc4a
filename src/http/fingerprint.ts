import { concatBytes } from "../bytes.ts";

/** What a retry of a request has in common with it: method, path with query, and body. */
export function requestFingerprint({ method, url, headers }: Request, body: Uint8Array): Uint8Array {
  const { pathname, search } = new URL(url);
  // The first two contain no line feed, so the parts cannot be confused.
  const head = new TextEncoder().encode(`${method}\n${pathname}${search}\n`);
  return concatBytes([head, withoutBoundary(headers.get("content-type") ?? "", body)]);
}

/** A form's body without the text between its parts, which clients draw anew for each attempt; any other body as it is. */
function withoutBoundary(contentType: string, body: Uint8Array): Uint8Array {
  const [, quoted, bare] = /^multipart\/[^;]+;.*?\bboundary=(?:"([^"]+)"|([^\s;]+))/i.exec(contentType) ?? [];
  const boundary = quoted ?? bare;
  if (!boundary) return body;
  // A character per byte. The parts' lengths keep two forms apart whose contents imitate a boundary.
  const parts = new TextDecoder("latin1").decode(body).split(`--${boundary}`);
  return new TextEncoder().encode(parts.map((part) => `${part.length}:${part}`).join(""));
}
