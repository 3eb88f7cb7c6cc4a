import type { Handled } from "../http/serve.ts";
import { isBodiless, isStream } from "../http/stored.ts";
import { concatBytes } from "../runtime/bytes.ts";
import { type Mask, maskWith } from "./mask.ts";
import { dropUnread, type HeaderValue, type NodeResponse } from "./message.ts";
import { headerNames, type Outgoing, type Shadow, shadowOf, withDestroy } from "./shadow.ts";

/** More than any of Node's streams buffers: a writer that waits for `drain` has filled a buffer. */
const enoughToDrain = 131_072;

/** Beside other headers, Node 20 keeps only the last value of each name of an array. */
function valuesByName(headers: readonly unknown[]): Record<string, unknown[]> {
  const flat = Array.isArray(headers[0]) ? headers.flat() : headers;
  const values: Record<string, unknown[]> = {};
  for (let at = 0; at < flat.length; at += 2) {
    const name = String(flat[at]);
    values[name] = [...(values[name] ?? []), flat[at + 1]];
  }
  return values;
}

function isOfConnection(error: unknown): boolean {
  return Object(error).code === "ECONNRESET";
}

/**
 * Holds the response back until its record is stored. A body that is not stored, by {@link isStream}, passes as soon as
 * `send` is called.
 *
 * While it is held, `res` answers from its shadow, a response of Node that reaches no network. Members are replaced on
 * `res` itself, because frameworks and middleware have references to it, and may keep its methods. If the connection
 * ends meanwhile, the handler sees it only after its answer, so that it can end it.
 *
 * Why not `res` itself, on a socket that collects: bytes of compressing middleware further out would be stored, Node
 * takes no head back, and HTTP/2 and Bun have no socket to exchange. Why not `write` and `end` alone: an error handler
 * would find `headersSent` false behind an answer, and answer again.
 */
export class HeldResponse {
  /** Rejects if the handler gives its response up. */
  readonly answered: Promise<Handled>;
  wasGivenUp = false;
  hasFailed = false;
  #settle!: { resolve(answer: Handled): void; reject(error: unknown): void };
  readonly #res: Outgoing;
  readonly #shadow: Shadow;
  #cap: number;
  readonly #outer: ReadonlyMap<string, HeaderValue>;
  readonly #mask: Mask;
  /** Held: the shadow answers. Passing: as if nothing were replaced. Dropped: another response was sent. */
  #phase: "held" | "passing" | "dropped" = "held";
  /** `isImplied`: by the body, not by `writeHead` or `flushHeaders`. */
  #head: { readonly status: number; readonly message: string; readonly isImplied: boolean } | undefined;
  #isWriting = false;
  #isSent = false;
  #hasEnded = false;
  /** With its bytes in the same call, Node knows the length. */
  #endHasBytes = false;
  #corks = 0;
  #isGone: boolean;
  /** Node would add some by itself. */
  readonly #removed: string[] = [];
  #chunks: Uint8Array[] = [];
  #length = 0;
  #askForMore: (() => void) | undefined;

  constructor(res: NodeResponse, cap: number, outer: object) {
    this.answered = new Promise((resolve, reject) => {
      this.#settle = { resolve, reject };
    });
    this.answered.catch(() => undefined);
    this.#res = res as unknown as Outgoing;
    this.#cap = cap;
    this.#outer = new Map(Object.entries(outer));
    this.#isGone = Boolean(this.#res.destroyed || this.#res.stream?.destroyed);
    this.#shadow = shadowOf(this.#res, cap + enoughToDrain, {
      write: (chunk, done) => this.#keep(chunk, done),
      destroy: (error) => this.#breakOff(() => this.#mask.socket()?.destroy(error), error),
      socket: () => this.#mask.socket(),
    });
    this.#mask = this.#putMaskOn();
    this.#holdEvents();
  }

  send(): void {
    // Given up while a stream's record was stored.
    if (this.wasGivenUp) return;
    const { cork, write, writeHead, end, flushHeaders } = this.#mask.original;
    const { writableNeedDrain } = this.#shadow.response;
    this.#stop();
    this.#copyHeaders();
    const res = this.#res;
    const { status, message, isImplied } = this.#head!;
    // The handler may have set others since, which has no effect in Node either.
    res.statusCode = status;
    if (!res.stream) res.statusMessage = message;
    if (!isImplied) writeHead.call(res, status);
    const last = this.#endHasBytes ? this.#chunks.pop() : undefined;
    let hasRoom: unknown = true;
    for (const chunk of this.#chunks.splice(0)) hasRoom = write.call(res, chunk);
    if (this.#hasEnded) end.call(res, last);
    else if (this.#length === 0) flushHeaders.call(res);
    this.#isSent = this.#hasEnded;
    // Not before these bytes: corked, Node would send them behind the end.
    for (; this.#corks > 0 && !this.#hasEnded; this.#corks -= 1) cork.call(res);
    if (writableNeedDrain && hasRoom) res.emit("drain");
    this.#tellGone();
  }

  replace(send: () => void): void {
    this.reset();
    send();
    this.#phase = "dropped";
  }

  reset(): void {
    const { response } = this.#shadow;
    this.#stop();
    const res = this.#res;
    // Fastify's are not there yet.
    for (const [name, value] of this.#outer) if (!res.hasHeader(name)) res.setHeader(name, value);
    for (const name of headerNames(response)) {
      // A browser needs the CORS headers to read any response.
      if (/^(access-control-.*|vary)$/i.test(name)) res.setHeader(name, response.getHeader(name));
    }
    if (!res.stream) res.statusMessage = "";
    this.#tellGone();
  }

  #stop(): void {
    if (this.#phase !== "held") return;
    const { sink } = this.#shadow;
    this.#cap = Number.POSITIVE_INFINITY;
    sink.uncork();
    this.#askForMore?.();
    this.#phase = "passing";
    this.#mask.takeOff();
  }

  #copyHeaders(): void {
    const { response } = this.#shadow;
    const { removeHeader, setHeader } = this.#mask.original;
    for (const name of [...headerNames(this.#res), ...this.#removed]) removeHeader.call(this.#res, name);
    for (const name of headerNames(response)) setHeader.call(this.#res, name, response.getHeader(name));
  }

  #tellGone(): void {
    // If it was not its turn, Node does not tell either.
    if (!this.#isGone || !(this.#res.stream || this.#mask.socket())) return;
    // First, because a writer that is done must not take the close for an error.
    if (this.#hasEnded) this.#res.emit("finish");
    this.#res.emit("close");
  }

  #putMaskOn(): Mask {
    const { response, methods } = this.#shadow;
    const { req } = this.#res;
    const mask = maskWith(
      this.#res,
      this.#shadow,
      {
        // Informational responses are sent at once.
        _writeRaw: (...given) => mask.socket()?.write(...given),
        writeHead: (...given) => this.#writeHead(given),
        writeHeader: (...given) => this.#writeHead(given),
        cork: () => {
          this.#corks += 1;
        },
        uncork: () => {
          this.#corks = Math.max(0, this.#corks - 1);
        },
        write: (...given) => this.#writeBy("write", given),
        end: (...given) => this.#end(given),
        destroy: (error) => this.#destroy(error),
        removeHeader: (...given) => {
          methods.removeHeader.apply(response, given);
          this.#removed.push(given[0] as string);
        },
      },
      (name) => this.#phase === "passing" && !(this.#isSent && /^(write|end)$/.test(name)),
    );
    const { socket } = req;
    if (socket && Object.hasOwn(req, "socket")) {
      // Express does it after an error behind the first byte, and Deno's server when the client leaves.
      req.socket = withDestroy(socket, (error) =>
        isOfConnection(error) ? socket.destroy(error) : this.#breakOff(() => socket.destroy(error), error),
      );
    }
    return mask;
  }

  #holdEvents(): void {
    const res = this.#res;
    const { response, sink } = this.#shadow;
    const { emit } = res;
    if (this.#isGone) {
      if (res.stream) res.removeAllListeners("finish");
      res.removeAllListeners("close");
    }
    res.emit = (event, ...given) => {
      const isEnd = event === "close" || event === "finish";
      if (isEnd && this.#phase === "held") {
        this.#isGone = true;
        return true;
      }
      // Unheard, a late write's error would end the process, which it would not without this middleware.
      if (event === "error" && this.#hasEnded && res.listenerCount(event) === 0) return false;
      const isHeard = emit.call(res, event, ...given);
      if (event === "finish") dropUnread(res.req);
      // For listeners of the response's socket.
      if (event === "close") sink.emit("close");
      return isHeard;
    };
    response.on("error", (error) => this.#phase === "held" && res.emit("error", error));
  }

  #writeHead(given: unknown[]): unknown {
    const { response, methods } = this.#shadow;
    const named = given.map((each) => (Array.isArray(each) ? valuesByName(each) : each));
    methods.writeHead.apply(response, named);
    // So that only the plain body reaches the sink.
    response._headerSent = true;
    response.chunkedEncoding = false;
    this.#head = {
      status: this.#res.statusCode,
      message: response.statusMessage,
      isImplied: this.#isWriting,
    };
    if (!this.#hasEnded && isStream(this.#storable(), this.#cap)) this.#answer("unfinished");
    return response;
  }

  #writeBy(name: "write" | "end", given: unknown[]): unknown {
    const { response, methods } = this.#shadow;
    this.#isWriting = true;
    try {
      return methods[name].apply(response, given);
    } finally {
      this.#isWriting = false;
    }
  }

  /** Up to the limit a write is done at once, because a writer that waits for it would never end the body. */
  #keep(chunk: Uint8Array, done: () => void): void {
    if (this.#phase === "held") {
      // A copy, because the writer may use its Buffer again.
      if (chunk.length > 0) this.#chunks.push(Uint8Array.prototype.slice.call(chunk));
      this.#length += chunk.length;
    }
    // With the last bytes done, the shadow would finish before the response.
    const isLast = this.#hasEnded && this.#shadow.sink.writableLength <= chunk.length;
    const isTooLong = this.#length > this.#cap;
    if (this.#phase === "held" && (isLast || isTooLong)) this.#askForMore = done;
    else done();
    if (isTooLong) this.#answer("unfinished");
  }

  #end(given: unknown[]): unknown {
    const { response, methods } = this.#shadow;
    if (this.#phase === "dropped" || response.finished) return methods.end.apply(response, given);
    const callback = given.find((each) => typeof each === "function") as (() => void) | undefined;
    this.#hasEnded = true;
    try {
      this.#writeBy(
        "end",
        given.filter((each) => each !== callback),
      );
    } catch (error) {
      this.#hasEnded = false;
      throw error;
    }
    if (callback) this.#res.once("finish", callback);
    this.#endHasBytes = given[0] !== callback && Object(given[0]).length > 0;
    this.#answer(concatBytes(this.#chunks));
    return response;
  }

  /** @param body `unfinished`: not stored, and answered before its end */
  #answer(body: Uint8Array<ArrayBuffer> | "unfinished"): void {
    const { status, headers } = this.#storable();
    const isStorable = status >= 200 && status <= 599;
    if (body === "unfinished") headers.set("transfer-encoding", "chunked");
    const response = isStorable
      ? new Response(isBodiless(status) ? null : body, { status, headers })
      : new Response(null, { status: 500 });
    // Perhaps a parser's error about a request whose client has gone: the retry will have its body.
    const isOfLostRequest = status >= 400 && this.#isGone && !this.#res.req.readableEnded;
    const failed = this.hasFailed || !isStorable || isOfLostRequest;
    this.#settle.resolve({ response, failed, isComplete: true });
  }

  #storable(): { status: number; headers: Headers } {
    const headers = new Headers();
    for (const [name, value] of Object.entries(this.#shadow.response.getHeaders() as object)) {
      if (String(value) === String(this.#outer.get(name))) continue;
      for (const each of Array.isArray(value) ? value : [value]) headers.append(name, String(each));
    }
    return { status: this.#head!.status, headers };
  }

  #destroy(error: unknown): unknown {
    const res = this.#res;
    const isWaiting = !res.stream && !this.#mask.socket();
    // Node 24: the connection has ended before it was the response's turn.
    if (isWaiting && isOfConnection(error)) {
      this.#isGone = true;
      return Object.assign(res, { destroyed: true });
    }
    const destroy = () => {
      // Bun answers 200 if only the response is destroyed.
      this.#mask.socket()?.destroy(error);
      return this.#mask.original.destroy.call(res, error);
    };
    return this.#breakOff(destroy, error);
  }

  #breakOff(destroy: () => unknown, error: unknown): unknown {
    const res = this.#res;
    const isAnswered = this.#hasEnded || this.#phase === "dropped";
    if (isAnswered && (this.#phase === "held" || !res.writableFinished)) res.once("finish", destroy);
    else if (this.#phase !== "held") destroy();
    else {
      this.wasGivenUp = true;
      this.#stop();
      destroy();
      this.#tellGone();
      this.#settle.reject(error ?? new Error("the handler has broken its response off"));
    }
    return res;
  }
}
