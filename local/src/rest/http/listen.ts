import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { createRequest, sendResponse } from "@remix-run/node-fetch-server";
import type { Answer } from "./inject-faults.ts";
import { refused } from "./response.ts";

/** An open port. */
export interface Listener {
  readonly port: number;
  /** Refuses new connections, closes the open ones and frees the port. Requests under way get no answer. */
  close(): Promise<void>;
}

/** Options of {@link listen}. */
export interface ListenOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Whether the process stays alive to listen. Connections never keep it alive. Default false. */
  readonly keepsAlive?: boolean | undefined;
}

/** Answers one request. */
export type Respond = (
  request: Request,
  from: { readonly address: string; readonly port: number },
) => Promise<Answer>;

/** How long a client may take to close an idle connection that was ended, in ms. Its process may be suspended. */
const closeTimeout = 500;

/**
 * Listens with `node:http`. Unlike a web server it can also break the connection, or never answer: see {@link Answer}.
 * Rejects when the port cannot be opened.
 */
export async function listen(answer: Respond, { host, port, keepsAlive }: ListenOptions): Promise<Listener> {
  let isClosing = false;
  const idle = new Set<Socket>();

  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { remoteAddress: address = "", remotePort = 0 } = incoming.socket;
    const request = requestOf(incoming, outgoing);
    const answered =
      request instanceof Request ? await answer(request, { address, port: remotePort }) : request;
    if (answered === "silence") return;
    if (answered === "reset") reset(incoming.socket);
    // The client may have gone while a stream was opened.
    else if (outgoing.destroyed) await answered.body?.cancel();
    // A stream that fails breaks the connection.
    else await sendResponse(outgoing, answered).catch(() => reset(incoming.socket));
  }

  const server = createServer((incoming, outgoing) => {
    idle.delete(incoming.socket);
    outgoing.once("finish", () => idle.add(incoming.socket));
    // Usually the client went away during the request or the response.
    serve(incoming, outgoing).catch((error: Error) => incoming.destroy(error));
  });
  server.on("connection", (socket) => {
    if (isClosing) socket.resetAndDestroy();
    else idle.add(socket.unref());
    socket.once("close", () => idle.delete(socket));
  });
  server.listen({ host, port });
  await once(server, "listening");
  if (!keepsAlive) server.unref();
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      isClosing = true;
      await endAll(idle);
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

/** The request, or the response to one that cannot be understood. */
function requestOf(incoming: IncomingMessage, outgoing: ServerResponse): Request | Response {
  // A proxy's target names the host. curl sends bytes that a URL cannot have.
  incoming.url = incoming
    .url!.replace(/^https?:\/\/[^/?]*/i, "")
    .replace(/[\x80-\xff]/g, (byte) => `%${byte.charCodeAt(0).toString(16)}`);
  try {
    return createRequest(incoming, outgoing, { host: "localhost" });
  } catch (error) {
    return refused(400, `ERR the request cannot be understood: ${(error as Error).message}`);
  }
}

/**
 * Ends idle keep-alive connections and waits until the clients have closed them. Otherwise a client's next request,
 * sent after a restart, would fail on a connection from before.
 */
async function endAll(idle: ReadonlySet<Socket>): Promise<void> {
  const closed = Array.from(idle, (socket) => {
    socket.end();
    return new Promise<void>((resolve) => socket.once("close", () => resolve()));
  });
  const timer = new AbortController();
  await Promise.race([Promise.all(closed), sleep(closeTimeout, undefined, { signal: timer.signal })]);
  timer.abort();
}

/**
 * Breaks a connection. A socket that is being ended must not be reset: Node 20 never closes it then, and its process
 * spins at exit, waiting for it.
 */
function reset(socket: Socket): void {
  if (socket.writableEnded) socket.destroy();
  else socket.resetAndDestroy();
}
