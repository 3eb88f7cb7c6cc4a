import { Buffer } from "node:buffer";
import type { IncomingMessage } from "node:http";

/** A request with its body, as far as that is kept; or the response to one that cannot be understood. */
export async function requestOf(incoming: IncomingMessage, keepBody: number): Promise<Request | Response> {
  const { method = "GET", url = "/", rawHeaders } = incoming;
  const body = await readBody(incoming, keepBody);
  const hasBody = body.length > 0 && method !== "GET" && method !== "HEAD";
  const headers = new Headers();
  try {
    for (let index = 0; index + 1 < rawHeaders.length; index += 2) {
      headers.append(rawHeaders[index]!, rawHeaders[index + 1]!);
    }
    return new Request(urlOf(url), { method, headers, ...(hasBody && { body: new Uint8Array(body) }) });
  } catch (error) {
    const { message } = error as Error;
    return Response.json({ error: `ERR the request cannot be understood: ${message}` }, { status: 400 });
  }
}

/** The URL of a request target. Bytes that a URL cannot have are percent-encoded. */
function urlOf(target: string): URL {
  const escaped = target.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16)}`);
  // Not resolved against a base: a path may begin with two slashes, which would be parsed as a host.
  const url = new URL(/^https?:/i.test(escaped) ? escaped : `http://localhost${escaped}`);
  if (!/^(?:https?:|\/|\*$)/i.test(target)) throw new TypeError("its target is neither a path nor a URL");
  return url;
}

/**
 * Reads the whole body, and keeps the first `limit` bytes: a client whose connection is closed while it sends may never see
 * the answer.
 *
 * @throws when the client goes away before the end
 */
async function readBody(incoming: IncomingMessage, limit: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of incoming as AsyncIterable<Buffer>) {
    if (size < limit) pieces.push(piece.subarray(0, limit - size));
    size += piece.length;
  }
  return Buffer.concat(pieces);
}
