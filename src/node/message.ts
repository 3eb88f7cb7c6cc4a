import { concatBytes } from "../runtime/bytes.ts";
import { sharedByCopies } from "../runtime/copies.ts";

// What this folder uses of Node's messages, and of what frameworks add to them. Structural, so that the package needs the
// types of neither.

/** A value of a header, as Node has it. */
export type HeaderValue = number | string | readonly string[] | undefined;

/** A request of `node:http`, perhaps with a framework's additions. */
export interface NodeRequest {
  readonly method?: string | undefined;
  url?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly httpVersionMajor?: number;
  /** Express: the URL before routers have cut their part off. */
  readonly originalUrl?: string;
}

/** The URL of a request, according to the framework's proxy settings. */
export interface Origin {
  /** `http` or `https`. */
  readonly protocol?: string | undefined;
  /** With its port, if it has one. */
  readonly host?: string | undefined;
}

/** A response of `node:http`. */
export interface NodeResponse {
  statusCode: number;
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  readonly writableFinished: boolean;
  getHeaders(): object;
  setHeader(name: string, value: string): unknown;
  end(...given: never[]): unknown;
  once(event: string, listener: () => void): unknown;
  off(event: string, listener: () => void): unknown;
}

/** A request's stream. */
interface Incoming extends NodeRequest {
  /** The body parser's result. Not of `NodeRequest`: Express would take its type for the route's type. */
  readonly body?: unknown;
  /** The bytes of a parsed body, where the platform keeps them: Nest with `rawBody`, Cloud Functions. */
  readonly rawBody?: unknown;
  readonly socket?: { readonly encrypted?: boolean };
  readonly complete: boolean;
  readonly destroyed: boolean;
  /** HTTP/2: the stream that the request is read from. */
  readonly stream?: { readonly readableEnded: boolean };
  readonly readableEnded: boolean;
  readonly readableEncoding?: string | null;
  readonly readableFlowing?: boolean | null;
  readonly readableDidRead?: boolean;
  readonly readableLength: number;
  listenerCount?(event: string): number;
  read(): Uint8Array | null;
  unshift(bytes: Uint8Array): void;
  resume(): unknown;
  on(event: string, listener: (error?: unknown) => void): unknown;
  off(event: string, listener: (error?: unknown) => void): unknown;
}

/** A request without its body. */
export function requestOf(req: NodeRequest, signal: AbortSignal, origin: Origin): Request {
  const { method = "GET", url: path = "/", originalUrl = path } = req;
  const { protocol = (req as Incoming).socket?.encrypted ? "https" : "http" } = origin;
  const headers = new Headers();
  for (const [name, value] of Object.entries(req.headers)) {
    if (value !== undefined && !name.startsWith(":")) headers.set(name, String(value));
  }
  // An empty one would make a host of the path's first part.
  const host = origin.host || req.headers[":authority"] || req.headers.host || "localhost";
  try {
    const base = `${protocol}://${host}`;
    // Proxies send whole URLs. A path that begins with two slashes must not be taken for a host.
    const url = originalUrl.startsWith("/") ? `${base}${originalUrl}` : new URL(originalUrl, base);
    return new Request(url, { method, headers, signal });
  } catch (cause) {
    throw badRequest("the request has no valid URL, host or method", cause);
  }
}

/** An error that Express and Fastify answer with 400. */
function badRequest(message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { status: 400, statusCode: 400 });
}

/**
 * The bytes of a request's body, or undefined if it has more than `cap`. They can be read from the request again.
 *
 * @param exact whether they must be the sent ones. Otherwise a parsed body may stand for them
 * @throws TypeError when the body has been read, or is read further out, and its bytes are gone
 */
export async function bodyOf(req: NodeRequest, cap: number, exact: boolean): Promise<Uint8Array | undefined> {
  const expected = expectedLength(req);
  if ((expected ?? 0) > cap) return undefined;
  const { rawBody, body } = req as Incoming;
  const bytes = [rawBody, body].find(isBytes);
  if (bytes) return bytes.length > cap ? undefined : bytes;
  // An empty one is not read: its end could not be read again.
  if (expected === 0) return new Uint8Array();
  if (isUnread(req as Incoming)) return readAndReturn(req as Incoming, expected, cap);
  const parsed = exact ? undefined : parsedBody(req as Incoming);
  if (parsed) return parsed.length > cap ? undefined : parsed;
  if (typeof rawBody === "string") {
    throw new TypeError(
      "req.rawBody is a string, and a signature needs the bytes: keep the Buffer itself, as in express.json({ verify: " +
        "(req, _res, buffer) => { req.rawBody = buffer; } })",
    );
  }
  throw new TypeError(
    "the body has been read, or others listen to it, and its bytes are gone: mount this before the body parser, or parse " +
      'this route with express.raw({ type: "*/*" }) (Nest: rawBody: true)',
  );
}

/** Requests whose bytes are in the stream again, put there by any copy of this package. */
const returned = () => sharedByCopies("node.returned", () => new WeakSet<Incoming>());

/** Whether the stream still has all bytes: listeners take them as they come, and `setEncoding` makes text of them. */
function isUnread(req: Incoming): boolean {
  const { readableEnded, readableEncoding, readableFlowing, readableDidRead } = req;
  if (readableEnded || readableEncoding || readableFlowing) return false;
  // A part of them is missing.
  if (readableDidRead && !returned().has(req)) return false;
  return !["data", "readable"].some((event) => req.listenerCount?.(event));
}

/**
 * Reads a body that nobody has read, as Node's server does behind an answer: else the request never emits `close`. Node takes
 * one that was read and put back for read.
 */
export function dropUnread(req: object): void {
  const { readableFlowing, listenerCount, resume } = req as Incoming;
  if (!returned().has(req as Incoming) || readableFlowing !== null) return;
  if (!listenerCount?.call(req, "readable")) resume.call(req);
}

/** The bytes that are announced. Undefined: only the end of the stream shows it. */
function expectedLength({ headers, httpVersionMajor = 1 }: NodeRequest): number | undefined {
  const { "content-length": length, "transfer-encoding": coding } = headers;
  if (length !== undefined) return Number(length);
  return coding === undefined && httpVersionMajor < 2 ? 0 : undefined;
}

function isBytes(value: unknown): value is Uint8Array {
  return ArrayBuffer.isView(value) && (value as Uint8Array).BYTES_PER_ELEMENT === 1;
}

/** A parsed body as bytes that depend on its content only. Of a form with files the parser leaves too little. */
function parsedBody({ body, headers }: Incoming): Uint8Array | undefined {
  const isForm = /^multipart\//i.test(String(headers["content-type"]));
  return isForm || body === undefined ? undefined : new TextEncoder().encode(JSON.stringify(body));
}

/** Whether all has arrived. HTTP/2 calls a request complete only when its end was announced. */
function isComplete({ complete, stream }: Incoming): boolean {
  return stream?.readableEnded ?? complete;
}

/**
 * Reads the stream, and puts all back before its end is announced. By the length, where there is one: what stands for
 * requests on serverless platforms and in tests does not say whether it is complete, or says so at the beginning.
 */
function readAndReturn(
  req: Incoming,
  expected: number | undefined,
  cap: number,
): Promise<Uint8Array | undefined> {
  return new Promise((resolve, reject) => {
    const chunks: Uint8Array[] = [];
    let length = 0;
    const listeners = { readable, end, error: fail, close: fail };
    // Nothing is announced any more.
    if (req.destroyed) return fail();
    // It is over, and without a byte: to listen is to read, which would announce the end.
    if (expected === undefined && isComplete(req) && req.readableLength === 0) return finish();
    for (const [event, listener] of Object.entries(listeners)) req.on(event, listener);

    function readable(): void {
      while (req.readableLength > 0) {
        const chunk = req.read();
        if (!chunk) break;
        chunks.push(chunk);
        length += chunk.length;
        if (length > cap) {
          stop();
          // Not kept: it is read only so that the connection can carry the answer.
          req.resume();
          resolve(undefined);
          return;
        }
      }
      if (expected === undefined ? isComplete(req) : length >= expected) finish();
    }
    function end(): void {
      // One that was encoded may have been decoded on the way.
      const isWhole = length >= (expected ?? 0) || req.headers["content-encoding"] !== undefined;
      if (isWhole) {
        finish();
        return;
      }
      stop();
      const cut = `only ${length} of the body's ${expected} bytes have come`;
      reject(new TypeError(`${cut}: raise the limit of what has cut it`));
    }
    function finish(): void {
      stop();
      const body = concatBytes(chunks);
      if (length > 0) req.unshift(body);
      returned().add(req);
      resolve(body);
    }
    function fail(cause?: unknown): void {
      stop();
      reject(badRequest("the client has gone before its request was complete", cause));
    }
    function stop(): void {
      for (const [event, listener] of Object.entries(listeners)) req.off(event, listener);
    }
  });
}
