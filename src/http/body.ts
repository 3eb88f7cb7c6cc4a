import { concatBytes, unshared } from "../runtime/bytes.ts";

/** Reads a stream to its end, if it has at most `cap` bytes. Otherwise returns a stream of all its bytes. */
export async function readUpTo(
  stream: ReadableStream<Uint8Array>,
  cap: number,
): Promise<Uint8Array | ReadableStream<Uint8Array>> {
  const reader = stream.getReader();
  const chunks: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    // Not by class, which differs between realms. Views of longer numbers would be cut to bytes.
    if (value?.BYTES_PER_ELEMENT !== 1) throw new TypeError("a body must be a stream of bytes");
    chunks.push(value);
    length += value.length;
    if (length > cap) return resumeStream(chunks, reader);
  }
  return concatBytes(chunks);
}

function resumeStream(
  chunks: Uint8Array[],
  reader: ReadableStreamDefaultReader<Uint8Array>,
): ReadableStream<Uint8Array> {
  return new ReadableStream({
    async pull(controller) {
      const chunk = chunks.shift() ?? (await reader.read()).value;
      if (chunk) controller.enqueue(chunk);
      else controller.close();
    },
    cancel: (reason) => reader.cancel(reason),
  });
}

/**
 * The request's body, byte for byte. If it has more than `cap` bytes, the result is undefined, and the rest is not read.
 *
 * @throws TypeError when the body was cut on the way, or may have been: see {@link whole}
 */
export async function bodyOf(request: Request, cap: number): Promise<Uint8Array | undefined> {
  if (Number(request.headers.get("content-length")) > cap) return undefined;
  if (!request.body) return new Uint8Array();
  const body = await readUpTo(request.body, cap);
  if (ArrayBuffer.isView(body)) return whole(request, body);
  // Not awaited: the sender may go on sending.
  void body.cancel().catch(() => undefined);
  return undefined;
}

/** The most bytes that the runtime's server hands over at once. */
const largestChunk = "Bun" in globalThis ? 524_288 : 65_536;

/**
 * The body, if no part of it is missing. Next.js ends a body before the chunk that exceeds its limit, and neither the
 * request nor the stream shows it. Without a Content-Length, a body that is just below the limit may be such a part.
 *
 * @throws TypeError when bytes are missing, or when Next.js may have cut a body that came without its length
 */
export function whole(request: Request, body: Uint8Array): Uint8Array {
  const { headers } = request;
  const { length } = body;
  const sent = headers.get("content-length");
  if (isCut(request, body)) {
    const cut = `only ${length} of the body's ${sent} bytes have come`;
    throw new TypeError(`${cut}: raise the limit of what has cut it (Next.js: proxyClientMaxBodySize)`);
  }
  if (sent !== null && !headers.has("content-encoding")) return body;
  const limit = nextLimits().find((most) => length > Math.max(0, most - largestChunk) && length <= most);
  if (limit === undefined) return body;
  throw new TypeError(
    `Next.js cuts bodies of more than ${limit} bytes, and this one, with ${length} and no Content-Length, may be cut: set ` +
      `proxyClientMaxBodySize to maxRequestBody + ${largestChunk}, or send Content-Length`,
  );
}

/** A server of Next.js, as it registers itself. */
interface NextServer {
  readonly nextConfig?: { readonly experimental?: { readonly proxyClientMaxBodySize?: number } };
}

/** The limits of the servers of `next start`, `next dev` and custom servers in this process. Other platforms have none. */
function nextLimits(): number[] {
  // Next.js's own, but there is no other trace of the limit.
  const key: unique symbol = Symbol.for("@next/router-server-methods") as never;
  const servers = (globalThis as { [key]?: Readonly<Record<string, NextServer | undefined>> })[key];
  return Object.values(servers ?? {}).map(
    (server) => server?.nextConfig?.experimental?.proxyClientMaxBodySize ?? 10_485_760,
  );
}

/** Whether a body has fewer bytes than the client has sent. One that was encoded may have been decoded on the way. */
export function isCut({ headers }: Request, body: Uint8Array): boolean {
  return body.length < Number(headers.get("content-length")) && !headers.has("content-encoding");
}

/** A request, and what Workers know of where it comes from. */
type IncomingRequest = Request & { readonly cf?: unknown };

/**
 * The request for the handler, with a body that can be read again. With `signal` in place of the request's own: a client
 * that hangs up must not stop half way a handler that will not run a second time.
 *
 * By its properties: the constructor takes no request that is a proxy, as Next.js hands over, or of another realm.
 */
export function withUnreadBody(request: IncomingRequest, body: Uint8Array, signal?: AbortSignal): Request {
  const { url, method, headers, redirect, cf } = request;
  const init: RequestInit & { readonly cf?: unknown } = {
    method,
    headers,
    redirect,
    signal: signal ?? request.signal,
    ...(cf !== undefined && { cf }),
    // An empty body, too, where there was one: without it the request would count as already read.
    ...((request.body || body.length > 0) && { body: unshared(body) }),
  };
  return new Request(url, init);
}
