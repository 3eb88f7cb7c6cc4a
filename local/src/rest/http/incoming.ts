import { Buffer } from "node:buffer";
import type { IncomingMessage } from "node:http";

// The methods that a Request must not have.
const impossibleMethods = /^(?:CONNECT|TRACE|TRACK)$/i;

/** A request without its body, or the response to a request line that cannot be parsed (400 or 405). */
export function headOf(incoming: IncomingMessage): Request | Response {
  const { method = "GET", url = "/" } = incoming;
  if (impossibleMethods.test(method)) {
    const error = `ERR Method not allowed: '${method}'`;
    return Response.json({ error }, { status: 405, headers: { allow: "HEAD, GET, POST, PUT" } });
  }
  try {
    const headers = new Headers();
    for (let index = 0; index + 1 < incoming.rawHeaders.length; index += 2) {
      headers.append(incoming.rawHeaders[index]!, incoming.rawHeaders[index + 1]!);
    }
    return new Request(urlOf(url), { method, headers });
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
 * Reads the body, at most `limit` bytes of it. The rest of a longer body is not read. Rejects when the client goes away
 * before the end.
 */
export function readBody(incoming: IncomingMessage, limit: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let size = 0;
    incoming.on("data", function keep(piece: Buffer) {
      pieces.push(piece.subarray(0, limit - size));
      size += piece.length;
      if (size < limit) return;
      incoming.pause().off("data", keep);
      resolve(Buffer.concat(pieces));
    });
    incoming.once("end", () => resolve(Buffer.concat(pieces)));
    incoming.once("error", reject);
    incoming.once("close", () => reject(new Error("the client went away")));
  });
}

/**
 * Reads and discards what a client still sends after it was answered: a client whose connection is closed while it
 * sends may never see the answer. After `limit` bytes the connection is closed nevertheless.
 */
export function discardRest(incoming: IncomingMessage, limit: number): void {
  if (incoming.complete) return;
  let size = 0;
  incoming.on("data", (piece: Buffer) => {
    size += piece.length;
    if (size > limit) incoming.destroy();
  });
  incoming.resume();
}
