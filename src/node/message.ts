import { concatBytes } from "../runtime/bytes.ts";
import { sharedByCopies } from "../runtime/copies.ts";

// Structural, so that the package needs no types of Node or frameworks.

export type HeaderValue = number | string | readonly string[] | undefined;

/** A request of `node:http` or a framework. */
export interface NodeRequest {
  readonly method?: string | undefined;
  url?: string | undefined;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly httpVersionMajor?: number;
  /** Express: the URL before routers have cut off their part. */
  readonly originalUrl?: string;
}

/** By the framework's proxy settings. */
export interface Origin {
  readonly protocol?: string | undefined;
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

interface Incoming extends NodeRequest {
  /** The body parser's result. Not in `NodeRequest`, because Express would take its type for the route's. */
  readonly body?: unknown;
  /** A parsed body's bytes: Nest with `rawBody`, Cloud Functions. */
  readonly rawBody?: unknown;
  readonly socket?: { readonly encrypted?: boolean };
  readonly complete: boolean;
  readonly destroyed: boolean;
  /** HTTP/2. */
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

export function requestOf(req: NodeRequest, signal: AbortSignal, origin: Origin): Request {
  const { method = "GET", url: path = "/", originalUrl = path } = req;
  const { protocol = (req as Incoming).socket?.encrypted ? "https" : "http" } = origin;
  const headers = new Headers();
  for (const [name, value] of Object.entries(req.headers)) {
    if (value !== undefined && !name.startsWith(":")) headers.set(name, String(value));
  }
  // Empty, it would make a host of the path's first part.
  const host = origin.host || req.headers[":authority"] || req.headers.host || "localhost";
  try {
    const base = `${protocol}://${host}`;
    // Proxies send whole URLs. A path with two slashes at its start must not be taken for a host.
    const url = originalUrl.startsWith("/") ? `${base}${originalUrl}` : new URL(originalUrl, base);
    return new Request(url, { method, headers, signal });
  } catch (cause) {
    throw badRequest("the request has no valid URL, host or method", cause);
  }
}

function badRequest(message: string, cause?: unknown): Error {
  return Object.assign(new Error(message, { cause }), { status: 400, statusCode: 400 });
}

/**
 * The body's bytes, or undefined if there are more than `cap`. They can be read from the request again.
 *
 * @param exact a parsed body cannot stand for the sent bytes
 */
export async function bodyOf(req: NodeRequest, cap: number, exact: boolean): Promise<Uint8Array | undefined> {
  const expected = expectedLength(req);
  if ((expected ?? 0) > cap) return undefined;
  const { rawBody, body } = req as Incoming;
  const bytes = [rawBody, body].find(isBytes);
  if (bytes) return bytes.length > cap ? undefined : bytes;
  // Its end could not be read again.
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

const returned = () => sharedByCopies("node.returned", () => new WeakSet<Incoming>());

/** Listeners take bytes as they come, and `setEncoding` makes text of them. */
function isUnread(req: Incoming): boolean {
  const { readableEnded, readableEncoding, readableFlowing, readableDidRead } = req;
  if (readableEnded || readableEncoding || readableFlowing) return false;
  if (readableDidRead && !returned().has(req)) return false;
  return !["data", "readable"].some((event) => req.listenerCount?.(event));
}

/**
 * Otherwise the request never emits `close`, because Node takes a body that was put back for read, and does not drop
 * it.
 */
export function dropUnread(req: object): void {
  const { readableFlowing, listenerCount, resume } = req as Incoming;
  if (!returned().has(req as Incoming) || readableFlowing !== null) return;
  if (!listenerCount?.call(req, "readable")) resume.call(req);
}

function expectedLength({ headers, httpVersionMajor = 1 }: NodeRequest): number | undefined {
  const { "content-length": length, "transfer-encoding": coding } = headers;
  if (length !== undefined) return Number(length);
  return coding === undefined && httpVersionMajor < 2 ? 0 : undefined;
}

function isBytes(value: unknown): value is Uint8Array {
  return ArrayBuffer.isView(value) && (value as Uint8Array).BYTES_PER_ELEMENT === 1;
}

/** Parsers leave too little of a form with files. */
function parsedBody({ body, headers }: Incoming): Uint8Array | undefined {
  const isForm = /^multipart\//i.test(String(headers["content-type"]));
  return isForm || body === undefined ? undefined : new TextEncoder().encode(JSON.stringify(body));
}

/** HTTP/2 calls a request complete only once its end was announced. */
function isComplete({ complete, stream }: Incoming): boolean {
  return stream?.readableEnded ?? complete;
}

/**
 * Puts all back before the stream's end is announced. It goes by the length, if there is one, because the requests of
 * serverless platforms and tests don't say, or say too early, that they are complete.
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
    if (req.destroyed) return fail();
    // Over without a byte: listening would read, and so announce the end.
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
          req.resume();
          resolve(undefined);
          return;
        }
      }
      if (expected === undefined ? isComplete(req) : length >= expected) finish();
    }
    function end(): void {
      // An encoded body may have been decoded on the way.
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
