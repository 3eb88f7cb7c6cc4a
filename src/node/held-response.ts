import { concatBytes } from "../bytes.ts";
import { isStream } from "../http/stored.ts";
import type { HeaderValue, NodeResponse } from "./message.ts";

/** What a handler has answered, for the record of its key. */
export interface Answer {
  readonly response: Response;
  /** It is not to be stored. */
  readonly failed?: boolean;
}

type Callback = (error?: Error) => void;

/** The methods of a response that are replaced while it is held. */
interface Methods {
  writeHead(status: number, ...given: unknown[]): unknown;
  flushHeaders?(): void;
  setHeader(name: string, value: HeaderValue): unknown;
  appendHeader?(name: string, value: HeaderValue): unknown;
  removeHeader(name: string): void;
  write(chunk: unknown, ...given: unknown[]): boolean;
  end(...given: unknown[]): unknown;
  destroy(error?: Error): unknown;
}

/** The rest of what is used of a response. */
interface Outgoing extends Methods, Omit<NodeResponse, keyof Methods> {
  readonly req: { readonly method?: string; readonly readableEnded: boolean };
  readonly socket?: { readonly readableEnded: boolean; readonly errored: unknown } | null;
  emit(event: string): boolean;
}

/**
 * More than the buffer of any stream of Node: a writer that was told to wait for `drain` has filled one, and hears it from
 * whatever stream it writes to, for example that of a middleware that compresses.
 */
const enoughToDrain = 131_072;

/**
 * Keeps back what the handler writes to `res` until its record is stored: status, headers and body. A body that is not
 * stored, by the rules of {@link isStream}, is passed on as soon as `send` is called, and so is all that follows.
 *
 * The response's methods stay replaced, because middleware within may have kept them; later they only pass calls on.
 */
export class HeldResponse {
  /** Rejects if the handler gives its response up. */
  readonly answered: Promise<Answer>;
  #settle!: { resolve(answer: Answer): void; reject(error: unknown): void };
  readonly #res: Outgoing;
  readonly #cap: number;
  /** The headers that middleware further out has set. */
  readonly #outer: ReadonlyMap<string, HeaderValue>;
  readonly #original: Methods;
  /** held: kept here; passing: as if nothing were replaced; dropped: another response was sent. */
  #phase: "held" | "passing" | "dropped" = "held";
  #wasGivenUp = false;
  /** Of the head that the handler has written. */
  #status: number | undefined;
  #hasEnded = false;
  #hasFailed = false;
  #mustDrain = false;
  #chunks: Uint8Array[] = [];
  #length = 0;
  #onFinish: Callback[] = [];

  /** @param cap the most bytes of a body that are stored */
  constructor(res: NodeResponse, cap: number, outer: object = res.getHeaders()) {
    this.answered = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    // The handler may give up before anybody waits.
    this.answered.catch(() => undefined);
    this.#res = res as unknown as Outgoing;
    this.#cap = cap;
    this.#outer = new Map(Object.entries(outer));
    this.#original = this.#replaceMethods();
    this.#pretend("headersSent", () => this.#status !== undefined);
    this.#pretend("writableEnded", () => this.#hasEnded);
    res.once("close", () => this.#onClose());
  }

  /** Whether the handler, or its framework, has broken its response off. */
  get wasGivenUp(): boolean {
    return this.#wasGivenUp;
  }

  /** The framework says that the handler has failed: its response is sent, but not stored. */
  fail(): void {
    this.#hasFailed = true;
  }

  /** Sends what was held; what follows is not held any more. */
  send(): void {
    const chunks = this.#stop();
    const res = this.#res;
    // The handler may have set another one since, without effect, as ever.
    res.statusCode = this.#status ?? res.statusCode;
    const { write, end, flushHeaders } = this.#original;
    const last = this.#hasEnded ? chunks.pop() : undefined;
    let hasRoom = true;
    for (const chunk of chunks) hasRoom = write.call(res, chunk);
    // In one call, from which Node knows the length.
    if (this.#hasEnded) end.call(res, last, () => this.#tellFinished());
    else if (chunks.length === 0) flushHeaders?.call(res);
    if (this.#mustDrain && hasRoom) res.emit("drain");
  }

  /** Sends another response in place of what was held. */
  replace(send: () => void): void {
    this.reset();
    send();
    this.#phase = "dropped";
    this.#tellFinished();
  }

  /** Forgets what was held, so that somebody else can answer. */
  reset(): void {
    this.#stop();
    const { setHeader, removeHeader } = this.#original;
    for (const name of Object.keys(this.#res.getHeaders())) {
      // A browser needs the CORS headers to read any response.
      if (/^(access-control-.*|vary)$/.test(name)) continue;
      const before = this.#outer.get(name);
      if (before === undefined) removeHeader.call(this.#res, name);
      else setHeader.call(this.#res, name, before);
    }
    this.#res.statusMessage = "";
  }

  #stop(): Uint8Array[] {
    const res = this.#res;
    this.#phase = "passing";
    // Both are inherited, and were hidden by what pretended.
    Reflect.deleteProperty(res, "headersSent");
    Reflect.deleteProperty(res, "writableEnded");
    return this.#chunks.splice(0);
  }

  #pretend(name: "headersSent" | "writableEnded", get: () => boolean): void {
    Object.defineProperty(this.#res, name, { configurable: true, get });
  }

  #replaceMethods(): Methods {
    const res = this.#res;
    const { writeHead, flushHeaders, setHeader, appendHeader, removeHeader, write, end, destroy } = res;
    const replaced: Methods = {
      writeHead: (status, ...given) => {
        if (this.#phase === "held") this.#writeHead(status, given);
        return res;
      },
      flushHeaders: () => this.#commit(),
      setHeader: (name, value) => this.#changeHeader(setHeader, name, value),
      removeHeader: (name) => void this.#changeHeader(removeHeader, name),
      write: (chunk, ...given) => this.#write(chunk, given),
      end: (...given) => this.#end(given),
      destroy: (error) => {
        this.#giveUp(error ?? new Error("the handler has destroyed its response"));
        return destroy.call(res, error);
      },
      ...(appendHeader && { appendHeader: (name, value) => this.#changeHeader(appendHeader, name, value) }),
    };
    const original = { writeHead, setHeader, removeHeader, write, end, destroy } as Methods;
    Object.assign(original, flushHeaders && { flushHeaders }, appendHeader && { appendHeader });
    for (const [name, method] of Object.entries(replaced)) {
      const passed = original[name as keyof Methods] as (...given: unknown[]) => unknown;
      const own = method as typeof passed;
      const replacement = (...given: unknown[]) =>
        this.#phase === "passing" ? passed.apply(res, given) : own(...given);
      Object.assign(res, { [name]: replacement });
    }
    return original;
  }

  /** By way of the response: middleware within may have replaced the method once more, to add headers. */
  #commit(): void {
    if (this.#status === undefined) this.#res.writeHead(this.#res.statusCode);
  }

  #writeHead(status: number, given: unknown[]): void {
    if (this.#status !== undefined) throw sentError("write");
    const res = this.#res;
    if (typeof given[0] === "string") res.statusMessage = given.shift() as string;
    for (const [name, value] of headersIn(given.at(-1))) res.setHeader(name, value);
    res.statusCode = status;
    this.#status = status;
    const { headers } = this.#storable();
    if (!this.#hasEnded && isStream({ headers }, this.#cap)) this.#passOn();
  }

  #changeHeader(change: (name: string, value: HeaderValue) => unknown, ...given: [string, HeaderValue?]) {
    if (this.#phase === "dropped") return this.#res;
    if (this.#status !== undefined) throw sentError("set");
    return change.apply(this.#res, given as [string, HeaderValue]);
  }

  #write(chunk: unknown, given: unknown[]): boolean {
    const callback = given.find((each) => typeof each === "function") as Callback | undefined;
    // At once: a writer that waits for it would never end its body.
    if (callback) queueMicrotask(callback);
    if (this.#phase === "dropped" || this.#hasEnded) return true;
    this.#keep(chunk, given[0]);
    this.#commit();
    if (this.#length <= this.#cap) return true;
    this.#passOn();
    this.#mustDrain = this.#length > enoughToDrain;
    return !this.#mustDrain;
  }

  #keep(chunk: unknown, encoding: unknown): void {
    // A copy: the writer may use its buffer again.
    const bytes = bytesFrom(chunk, typeof encoding === "string" ? encoding : undefined);
    this.#chunks.push(bytes);
    this.#length += bytes.length;
  }

  #end(given: unknown[]): unknown {
    const callback = given.find((each) => typeof each === "function") as Callback | undefined;
    const [chunk, encoding] = given;
    if (callback) this.#onFinish.push(callback);
    if (this.#phase === "dropped") this.#tellFinished();
    else if (!this.#hasEnded) {
      if (chunk !== undefined && chunk !== null && chunk !== callback) this.#keep(chunk, encoding);
      this.#hasEnded = true;
      this.#commit();
      this.#answer(concatBytes(this.#chunks));
    }
    return this.#res;
  }

  #tellFinished(): void {
    for (const callback of this.#onFinish.splice(0)) callback();
  }

  /** The body is not stored: the response is answered before it has ended. */
  #passOn(): void {
    this.#answer(new ReadableStream());
  }

  #answer(body: Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>): void {
    const { status, headers } = this.#storable();
    // 101 is an upgraded connection; the others are not of HTTP.
    const isStorable = status >= 200 && status <= 599;
    const isBodiless = this.#res.req.method === "HEAD" || /^(204|205|304)$/.test(`${status}`);
    if (!ArrayBuffer.isView(body)) headers.set("transfer-encoding", "chunked");
    const response = isStorable
      ? new Response(isBodiless ? null : body, { status, headers })
      : new Response(null, { status: 500 });
    const failed = this.#hasFailed || !isStorable || this.#isOfLostRequest(status);
    this.#settle.resolve({ response, failed });
  }

  /** An error that a parser may have made of a request whose client has gone: the retry will have its body. */
  #isOfLostRequest(status: number): boolean {
    const { destroyed, req } = this.#res;
    return status >= 400 && destroyed && !req.readableEnded;
  }

  /** Status, and the headers that the handler has set or changed. */
  #storable(): { status: number; headers: Headers } {
    const headers = new Headers();
    for (const [name, value] of Object.entries(this.#res.getHeaders()) as [string, HeaderValue][]) {
      if (String(value) === String(this.#outer.get(name))) continue;
      for (const each of Array.isArray(value) ? value : [value]) headers.append(name, String(each));
    }
    return { status: this.#res.statusCode, headers };
  }

  /**
   * The connection has ended. A handler that has not begun to answer may still do so. One that is writing does not always
   * go on: a stream that is piped stops. What it did counts all the same, unless it was the server that broke off, as
   * Express does after an error.
   */
  #onClose(): void {
    if (this.#phase !== "held" || this.#status === undefined || this.#hasEnded) return;
    const { socket } = this.#res;
    if (!socket || socket.readableEnded || socket.errored) this.#passOn();
    else this.#giveUp(new Error("the connection was ended while the handler wrote its response"));
  }

  #giveUp(error: unknown): void {
    if (this.#phase !== "held" || this.#hasEnded) return;
    this.#wasGivenUp = true;
    this.#phase = "dropped";
    this.#settle.reject(error);
  }
}

/** The headers of `writeHead`: an object, or names and values in turn. */
function headersIn(given: unknown): [string, HeaderValue][] {
  if (!Array.isArray(given)) return Object.entries((given ?? {}) as Record<string, HeaderValue>);
  const byName = new Map<string, HeaderValue>();
  for (let index = 0; index < given.length; index += 2) {
    const [name, value] = given.slice(index, index + 2);
    const before = byName.get(name);
    byName.set(name, before === undefined ? value : [before, value].flat());
  }
  return [...byName];
}

function bytesFrom(chunk: unknown, encoding: string | undefined): Uint8Array {
  const { Buffer } = globalThis as unknown as {
    Buffer: { from(chunk: unknown, encoding?: string): Uint8Array };
  };
  if (typeof chunk === "string" || ArrayBuffer.isView(chunk)) return Buffer.from(chunk, encoding);
  throw new TypeError("a body is written as text, Buffer or Uint8Array");
}

function sentError(verb: string): Error {
  const error = new Error(`Cannot ${verb} headers after they are sent to the client`);
  return Object.assign(error, { code: "ERR_HTTP_HEADERS_SENT" });
}
