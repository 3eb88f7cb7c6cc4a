import { Buffer } from "node:buffer";
import { once, setMaxListeners } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { discardRest, headOf, readBody } from "./incoming.ts";
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
  /** Bytes of a body that are read at most. Set it above the handler's own limit, so that the handler can refuse. */
  readonly keepBody: number;
  /** Whether to read the body of a request, by its head. If false, `answer` gets no body. Default: always true. */
  readonly reads?: (head: Request) => boolean;
}

/** Answers one request. `closing` aborts when the listener closes. */
export type Respond = (request: Request, peer: Peer, closing: AbortSignal) => Promise<Answer>;

/** The other end of a connection. */
export interface Peer {
  readonly address: string;
  readonly port: number;
}

/** How long a client may take to close an idle connection that was ended, in ms. Its process may be suspended. */
const closeTimeout = 500;

/**
 * Listens with `node:http`. Unlike a web server it can also break the connection, or never answer: see {@link Answer}.
 * Rejects when the port cannot be opened.
 */
export async function listen(answer: Respond, options: ListenOptions): Promise<Listener> {
  const closing = new AbortController();
  // Every delayed request adds a listener to this signal; Node warns of more than ten.
  setMaxListeners(0, closing.signal);
  const idle = new Set<Socket>();

  async function respond(head: Request, exchange: Exchange): Promise<Answer> {
    const request = await withBody(head, exchange, options);
    const { remoteAddress: address = "", remotePort: port = 0 } = exchange.incoming.socket;
    return answer(request, { address, port }, closing.signal);
  }

  function receive(incoming: IncomingMessage, outgoing: ServerResponse): void {
    const { socket } = incoming;
    idle.delete(socket);
    outgoing.once("finish", () => idle.add(socket));
    serve({ incoming, outgoing }, respond, options.keepBody).catch((error: Error) => {
      // Usually the client went away during the request or the response. If not, it gets an error.
      if (incoming.destroyed || outgoing.headersSent) incoming.destroy(error);
      else outgoing.writeHead(500).end();
    });
  }

  const server = createServer(receive);
  // Without this, Node would send "100 Continue" before `reads` has decided.
  server.on("checkContinue", receive);
  server.on("connection", (socket) => {
    if (closing.signal.aborted) socket.resetAndDestroy();
    else idle.add(socket);
    socket.once("close", () => idle.delete(socket));
  });
  await open(server, options);
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      closing.abort();
      await endAll(idle);
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
}

interface Exchange {
  readonly incoming: IncomingMessage;
  readonly outgoing: ServerResponse;
}

function open(server: Server, { host, port }: ListenOptions): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen({ host, port }, resolve);
  });
}

async function serve(
  exchange: Exchange,
  respond: (head: Request, exchange: Exchange) => Promise<Answer>,
  keepBody: number,
): Promise<void> {
  const { incoming, outgoing } = exchange;
  const head = headOf(incoming);
  const answer = head instanceof Request ? await respond(head, exchange) : head;
  if (answer === "silence") return;
  if (answer === "reset") {
    reset(incoming.socket);
    return;
  }
  if (isStream(answer)) {
    await sendStream(answer, exchange);
    return;
  }
  const body = Buffer.from(await answer.arrayBuffer());
  outgoing.writeHead(answer.status, {
    ...Object.fromEntries(answer.headers),
    "content-length": body.length,
  });
  outgoing.end(body);
  discardRest(incoming, keepBody);
}

/** Sends the events of a stream until it ends or the client goes away. A stream that fails breaks the connection. */
async function sendStream({ status, headers, body }: Response, exchange: Exchange): Promise<void> {
  const { incoming, outgoing } = exchange;
  const reader = body!.getReader();
  const gone = new Promise<void>((resolve) => outgoing.once("close", resolve));
  // A stream that has failed cannot be cancelled; its failure is handled below.
  const cancel = () => reader.cancel().catch(() => undefined);
  gone.then(cancel);
  // The client may have gone while the stream was opened; then there is no further event.
  if (outgoing.destroyed || incoming.socket.destroyed) await cancel();
  try {
    outgoing.writeHead(status, Object.fromEntries(headers));
    outgoing.flushHeaders();
    for (let next = await reader.read(); next.value; next = await reader.read()) {
      if (!outgoing.write(next.value)) await Promise.race([once(outgoing, "drain"), gone]);
    }
    outgoing.end();
  } catch {
    reset(incoming.socket);
  }
}

async function withBody(
  head: Request,
  { incoming, outgoing }: Exchange,
  { reads, keepBody }: ListenOptions,
): Promise<Request> {
  if (reads?.(head) === false) return head;
  if (incoming.headers.expect !== undefined) outgoing.writeContinue();
  const body = await readBody(incoming, keepBody);
  const hasBody = body.length > 0 && head.method !== "GET" && head.method !== "HEAD";
  return hasBody ? new Request(head, { body: new Uint8Array(body) }) : head;
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
