import { Buffer } from "node:buffer";
import { setMaxListeners } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import type { Answer } from "./fault-server.ts";

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
  const server = createServer((incoming, outgoing) => {
    const { socket } = incoming;
    idle.delete(socket);
    outgoing.once("finish", () => idle.add(socket));
    serve(incoming, outgoing).catch((error: Error) => {
      // The client went away in the middle of a request or a response.
      incoming.destroy(error);
    });
  });
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

  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const request = await toRequest(incoming, options.keepBody);
    const remoteAddress = incoming.socket.remoteAddress ?? "";
    const answered = await answer(request, remoteAddress, closing.signal);
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

async function toRequest(incoming: IncomingMessage, keepBody: number): Promise<Request> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of incoming as AsyncIterable<Buffer>) {
    // The rest is still read: a client that is cut off while it sends never sees the answer.
    if (size < keepBody) pieces.push(piece.subarray(0, keepBody - size));
    size += piece.length;
  }
  const headers = new Headers();
  for (let index = 0; index + 1 < incoming.rawHeaders.length; index += 2) {
    headers.append(incoming.rawHeaders[index]!, incoming.rawHeaders[index + 1]!);
  }
  const method = incoming.method ?? "GET";
  const hasBody = pieces.length > 0 && method !== "GET" && method !== "HEAD";
  return new Request(new URL(incoming.url ?? "/", "http://localhost"), {
    method,
    headers,
    ...(hasBody && { body: Buffer.concat(pieces) }),
  });
}
