import { concatBytes, unshared } from "../runtime/bytes.ts";

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
    // Classes differ between realms, and views of longer numbers would be cut to bytes.
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
 * Undefined if the body has more than `cap` bytes.
 *
 * @throws TypeError the body was cut on the way, or may have been: see {@link whole}
 */
export async function bodyOf(request: Request, cap: number): Promise<Uint8Array | undefined> {
  if (Number(request.headers.get("content-length")) > cap) return undefined;
  if (!request.body) return new Uint8Array();
  const body = await readUpTo(request.body, cap);
  if (ArrayBuffer.isView(body)) return whole(request, body);
  void body.cancel().catch(() => undefined);
  return undefined;
}

/** The most bytes that the runtime's server hands over at once. */
const largestChunk = "Bun" in globalThis ? 524_288 : 65_536;

/**
 * Next.js ends a body before the chunk that exceeds its limit, and neither request nor stream shows it. So without a
 * Content-Length, a body just below the limit is refused.
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

interface NextServer {
  readonly nextConfig?: { readonly experimental?: { readonly proxyClientMaxBodySize?: number } };
}

function nextLimits(): number[] {
  // Next.js's own, because there is no other trace of the limit.
  const key: unique symbol = Symbol.for("@next/router-server-methods") as never;
  const servers = (globalThis as { [key]?: Readonly<Record<string, NextServer | undefined>> })[key];
  return Object.values(servers ?? {}).map(
    (server) => server?.nextConfig?.experimental?.proxyClientMaxBodySize ?? 10_485_760,
  );
}

/** An encoded body may have been decoded on the way. */
export function isCut({ headers }: Request, body: Uint8Array): boolean {
  return body.length < Number(headers.get("content-length")) && !headers.has("content-encoding");
}

type IncomingRequest = Request & { readonly cf?: unknown };

/**
 * A client that disconnects must not stop a handler that will not run again, so `signal` replaces the request's own.
 * Not by `new Request(request)`, which takes no proxy, as Next.js has, and no request of another realm.
 */
export function withUnreadBody(request: IncomingRequest, body: Uint8Array, signal?: AbortSignal): Request {
  const { url, method, headers, redirect, cf } = request;
  const init: RequestInit & { readonly cf?: unknown } = {
    method,
    headers,
    redirect,
    signal: signal ?? request.signal,
    ...(cf !== undefined && { cf }),
    // Without an empty body the request would count as read.
    ...((request.body || body.length > 0) && { body: unshared(body) }),
  };
  return new Request(url, init);
}
