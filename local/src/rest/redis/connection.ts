import { once } from "node:events";
import { connect as connectTcp, type Socket } from "node:net";
import process from "node:process";
import { connect as connectTls } from "node:tls";
import { ReplyError } from "../../../../lock-server/src/engine/reply-error.ts";
import { BackendGoneError, type Command } from "../backend.ts";
import { encodeCommands, RespParser, type WireReply } from "./resp.ts";

interface Waiting {
  readonly count: number;
  readonly replies: WireReply[];
  readonly resolve: (replies: WireReply[]) => void;
  readonly reject: (error: Error) => void;
}

/** Receives what a server sends to a connection that has subscribed. */
export interface Listener {
  receive(reply: WireReply): void;
  /** The connection is closed. */
  closed(error: Error): void;
}

/**
 * One RESP2 connection. It does not reconnect, queue while offline, or retry: a command that is sent twice without the
 * caller's knowledge would invalidate tests of what happens after a lost reply.
 */
export class RedisConnection {
  #socket: Socket;
  #parser = new RespParser();
  #waiting: Waiting[] = [];
  #listener: Listener | undefined;
  #ended: Error | undefined;

  private constructor(socket: Socket, url: string) {
    this.#socket = socket;
    socket.setNoDelay(true);
    // Only replies that somebody waits for keep the process alive.
    socket.unref();
    socket.on("data", (bytes: Buffer) => this.#receive(bytes));
    socket.on("error", (cause) => this.#end(new BackendGoneError(`${url}: ${cause.message}`, { cause })));
    socket.on("close", () => this.#end(new BackendGoneError(`${url}: the connection was closed`)));
  }

  /**
   * Connects to `redis://` or `rediss://` `[user:password@]host[:port][/database]`. Rejects with a `TypeError` for
   * another scheme, a `BackendGoneError` when the server does not answer, and a `ReplyError` when it refuses the password
   * or the database.
   */
  static async open(address: string): Promise<RedisConnection> {
    const url = new URL(address);
    if (url.protocol !== "redis:" && url.protocol !== "rediss:") {
      throw new TypeError(`a Redis URL begins with redis:// or rediss://, not ${url.protocol}//`);
    }
    const tls = url.protocol === "rediss:";
    const host = url.hostname.replace(/^\[|\]$/g, "") || "127.0.0.1";
    const port = Number(url.port || 6379);
    const socket = tls ? connectTls({ host, port, servername: host }) : connectTcp({ host, port });
    // Used in error messages, so without the password.
    const where = `${url.protocol}//${url.hostname}:${port}`;
    await once(socket, tls ? "secureConnect" : "connect").catch((cause) => {
      throw new BackendGoneError(`${where}: ${cause.message}`, { cause });
    });
    const connection = new RedisConnection(socket, where);
    const greeting: string[][] = [];
    if (url.password) {
      const password = decodeURIComponent(url.password);
      greeting.push(url.username ? ["AUTH", decodeURIComponent(url.username), password] : ["AUTH", password]);
    }
    if (url.pathname.length > 1) greeting.push(["SELECT", url.pathname.slice(1)]);
    for (const reply of await connection.send(greeting)) {
      if (reply instanceof ReplyError) {
        connection.close();
        throw reply;
      }
    }
    return connection;
  }

  /** Whether commands can still be sent. */
  get open(): boolean {
    return this.#ended === undefined;
  }

  /**
   * Sends commands as one pipeline and resolves with their replies, errors included as `ReplyError` values. Rejects with
   * a `BackendGoneError` when the connection breaks.
   */
  send(commands: readonly Command[]): Promise<WireReply[]> {
    if (commands.length === 0) return Promise.resolve([]);
    if (this.#ended) return Promise.reject(this.#ended);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ count: commands.length, replies: [], resolve, reject });
      this.#socket.ref();
      // What is sent in one turn is written at once: a write for each command took most of the time of a pipeline.
      this.#socket.cork();
      this.#socket.write(encodeCommands(commands));
      process.nextTick(() => this.#socket.uncork());
    });
  }

  /**
   * Sends SUBSCRIBE or PSUBSCRIBE, and from then on passes everything that the server sends to `listener`. Nothing else can be
   * sent afterwards.
   */
  listen(command: Command, listener: Listener): void {
    this.#listener = listener;
    if (this.#ended) listener.closed(this.#ended);
    else this.#socket.write(encodeCommands([command]));
  }

  /** Closes the connection. Calls of {@link send} that wait for a reply reject. */
  close(): void {
    this.#socket.destroy();
    this.#end(new BackendGoneError("the connection was closed"));
  }

  #receive(bytes: Buffer): void {
    let replies: WireReply[];
    try {
      replies = this.#parser.push(bytes);
    } catch (error) {
      this.#end(error as Error);
      this.#socket.destroy();
      return;
    }
    for (const reply of replies) {
      this.#listener?.receive(reply);
      const first = this.#waiting[0];
      if (!first) continue;
      first.replies.push(reply);
      if (first.replies.length === first.count) {
        this.#waiting.shift();
        if (this.#waiting.length === 0) this.#socket.unref();
        first.resolve(first.replies);
      }
    }
  }

  #end(error: Error): void {
    if (this.#ended) return;
    this.#ended = error;
    this.#listener?.closed(error);
    for (const waiting of this.#waiting.splice(0)) waiting.reject(error);
  }
}
