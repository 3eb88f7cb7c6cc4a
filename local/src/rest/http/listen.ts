import { Buffer } from "node:buffer";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { requestOf } from "./incoming.ts";
import { type Answer, isStream } from "./inject-faults.ts";

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
  /** Bytes of a body that the handler takes; of a longer one it gets one more. */
  readonly maxBody: number;
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
export async function listen(
  answer: Respond,
  { host, port, maxBody, keepsAlive }: ListenOptions,
): Promise<Listener> {
  let isClosing = false;
  const idle = new Set<Socket>();

  async function serve(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    const { remoteAddress: address = "", remotePort = 0 } = incoming.socket;
    const request = await requestOf(incoming, maxBody + 1);
    const answered =
      request instanceof Request ? await answer(request, { address, port: remotePort }) : request;
    if (answered === "reset") reset(incoming.socket);
    else if (answered !== "silence") await send(answered, outgoing);
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

async function send(answer: Response, outgoing: ServerResponse): Promise<void> {
  const { status, headers } = answer;
  if (isStream(answer)) {
    await sendStream(answer, outgoing);
    return;
  }
  const body = Buffer.from(await answer.arrayBuffer());
  outgoing.writeHead(status, { ...Object.fromEntries(headers), "content-length": body.length }).end(body);
}

/** Sends the events of a stream until it ends or the client goes away. A stream that fails breaks the connection. */
async function sendStream({ status, headers, body }: Response, outgoing: ServerResponse): Promise<void> {
  const reader = body!.getReader();
  const { socket } = outgoing;
  const gone = new Promise<void>((resolve) => outgoing.once("close", resolve));
  // A stream that has failed cannot be cancelled; its failure is handled below.
  const cancel = () => reader.cancel().catch(() => undefined);
  gone.then(cancel);
  // The client may have gone while the stream was opened; then there is no further event.
  if (outgoing.destroyed || !socket || socket.destroyed) await cancel();
  try {
    outgoing.writeHead(status, Object.fromEntries(headers)).flushHeaders();
    for (let next = await reader.read(); next.value; next = await reader.read()) {
      if (!outgoing.write(next.value)) await Promise.race([once(outgoing, "drain"), gone]);
    }
    outgoing.end();
  } catch {
    if (socket) reset(socket);
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
