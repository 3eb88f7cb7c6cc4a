import { Buffer } from "node:buffer";
import { setMaxListeners } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Answer } from "./inject-faults.ts";

/** A port that is being listened on. */
export interface Listener {
  readonly port: number;
  /** Refuses new connections, breaks the open ones and frees the port. */
  close(): Promise<void>;
}

/** Where to listen, and how much of a body to keep. */
export interface ListenOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Of a longer body only this much is kept, in bytes: enough for the handler to refuse it. */
  readonly keepBody: number;
  /**
   * Whether the body of a request is read at all, by its head. If not, `answer` gets the request without it.
   * Default: always.
   */
  readonly reads?: (head: Request) => boolean;
}

/** How long a client may take to notice that its idle connection has ended, in ms; it may be suspended. */
const hangUpLimit = 500;

/**
 * Listens with `node:http`. Unlike a web server it can answer by breaking the connection, or not at all.
 * `answer` gets the peer's address, and a signal that aborts when the listener closes.
 */
export async function listen(
  answer: (request: Request, remoteAddress: string, closing: AbortSignal) => Promise<Answer>,
  options: ListenOptions,
): Promise<Listener> {
  const closing = new AbortController();
  // Every request that a fault holds back listens to it.
  setMaxListeners(0, closing.signal);
  const idle = new Set<Socket>();
  const server = createServer(receive);
  // Whether the client is to go on with its body is decided by the head, like whether it is read.
  server.on("checkContinue", receive);
  server.on("connection", (socket) => {
    if (closing.signal.aborted) socket.resetAndDestroy();
    else idle.add(socket);
    socket.once("close", () => idle.delete(socket));
  });

  /**
   * Ends the connections that clients keep for their next request, and waits until the clients know: else that
   * request, sent after the restart, would fail on a connection of before.
   */
  async function hangUp(): Promise<void> {
    const gone = Array.from(idle, (socket) => {
      socket.end();
      return new Promise<void>((resolve) => socket.once("close", () => resolve()));
    });
    const limit = new AbortController();
    await Promise.race([Promise.all(gone), sleep(hangUpLimit, undefined, { signal: limit.signal })]);
    limit.abort();
  }

  function receive(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { socket } = incoming;
    idle.delete(socket);
    outgoing.once("finish", () => idle.add(socket));
    serve(incoming, outgoing).catch((error: Error) => {
      // The client went away in the middle of a request or a response. If it is still there, it is told.
      if (incoming.destroyed || outgoing.headersSent) incoming.destroy(error);
      else outgoing.writeHead(500).end();
    });
  }

  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const head = headOf(incoming);
    const answered = head instanceof Request ? await respond(head, incoming, outgoing) : head;
    if (answered === "silence") return;
    if (answered === "reset") {
      breakOff(incoming.socket);
      return;
    }
    const body = Buffer.from(await answered.arrayBuffer());
    outgoing.writeHead(answered.status, {
      ...Object.fromEntries(answered.headers),
      "content-length": body.length,
    });
    outgoing.end(body);
    dropRest(incoming, options.keepBody);
  }

  async function respond(
    head: Request,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
  ): Promise<Answer> {
    const reads = options.reads?.(head) ?? true;
    if (reads && incoming.headers.expect !== undefined) outgoing.writeContinue();
    const body = reads ? await readBody(incoming, options.keepBody) : Buffer.alloc(0);
    const hasBody = body.length > 0 && head.method !== "GET" && head.method !== "HEAD";
    const request = hasBody ? new Request(head, { body: new Uint8Array(body) }) : head;
    return answer(request, incoming.socket.remoteAddress ?? "", closing.signal);
  }

  await new Promise<void>((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host: options.host, port: options.port }, resolve);
  });
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      closing.abort();
      await hangUp();
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

/**
 * Breaks a connection. One that is being ended already must not be reset: Node 20 then never closes it, and
 * spins at its own exit waiting for that.
 */
function breakOff(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}

// Those that a Request cannot have.
const impossibleMethods = /^(?:CONNECT|TRACE|TRACK)$/i;

/** A request without its body, or the answer to one that cannot be understood. */
function headOf(incoming: IncomingMessage): Request | Response {
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
    return new Request(addressOf(url), { method, headers });
  } catch (error) {
    const { message } = error as Error;
    return Response.json({ error: `ERR the request cannot be understood: ${message}` }, { status: 400 });
  }
}

/** The URL that a request line means. Bytes that no URL has are what they would be in percents. */
function addressOf(target: string): URL {
  const escaped = target.replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16)}`);
  // A path may begin with two slashes, which a relative URL takes for a host.
  const address = new URL(/^https?:/i.test(escaped) ? escaped : `http://localhost${escaped}`);
  if (!/^(?:https?:|\/|\*$)/i.test(target)) throw new TypeError("its target is neither a path nor a URL");
  return address;
}

/** The body, or its first `most` bytes; the rest of a longer one is not read. */
function readBody(incoming: IncomingMessage, most: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const pieces: Buffer[] = [];
    let size = 0;
    incoming.on("data", function keep(piece: Buffer) {
      pieces.push(piece.subarray(0, most - size));
      size += piece.length;
      if (size < most) return;
      incoming.pause().off("data", keep);
      resolve(Buffer.concat(pieces));
    });
    incoming.once("end", () => resolve(Buffer.concat(pieces)));
    incoming.once("error", reject);
    incoming.once("close", () => reject(new Error("the client went away")));
  });
}

/**
 * Reads what a client still sends after its answer, without keeping it: one that is cut off while it sends may
 * never see the answer. One that goes on for too long is cut off.
 */
function dropRest(incoming: IncomingMessage, most: number): void {
  if (incoming.complete) return;
  let size = 0;
  incoming.on("data", (piece: Buffer) => {
    size += piece.length;
    if (size > most) incoming.destroy();
  });
  incoming.resume();
}
