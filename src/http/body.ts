/**
 * Reads a stream to its end, if that comes within `cap` bytes. Otherwise the stream is handed back as it was,
 * what has been read included.
 */
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
    if (!ArrayBuffer.isView(value)) throw new TypeError("a body must be a stream of bytes");
    chunks.push(value);
    length += value.length;
    if (length > cap) return resumed(chunks, reader);
  }
  const [only] = chunks;
  if (chunks.length === 1 && only) return only;
  const bytes = new Uint8Array(length);
  let offset = 0;
  for (const chunk of chunks) {
    bytes.set(chunk, offset);
    offset += chunk.length;
  }
  return bytes;
}

function resumed(
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

/** The request's body, byte for byte; undefined when it has more than `cap` bytes, which are then not read on. */
export async function bodyOf(request: Request, cap: number): Promise<Uint8Array | undefined> {
  if (Number(request.headers.get("content-length")) > cap) return undefined;
  if (!request.body) return new Uint8Array();
  const body = await readUpTo(request.body, cap);
  if (ArrayBuffer.isView(body)) return body;
  // Nobody waits for a sender that goes on nevertheless.
  void body.cancel().catch(() => undefined);
  return undefined;
}

/**
 * The request for the handler: its body, which has been read, can be read again. With `signal` instead of its
 * own: a client that hangs up must not cut off half way what will not be done a second time.
 */
export function unread(request: Request, body: Uint8Array, signal?: AbortSignal): Request {
  return new Request(request, {
    // An empty one too, where there was one: without it the request would still be one that has been read.
    ...((request.body || body.length > 0) && { body: body as Uint8Array<ArrayBuffer> }),
    ...(signal && { signal }),
  });
}
