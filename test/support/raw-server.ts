import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

/** A request to a {@link RawServer}. */
export interface RawRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The body as a command, or the first command of a pipeline; empty if it is neither. */
  readonly command: readonly string[];
}

/** The answer to a request: an HTTP response, a broken connection, or none at all. */
export type RawReply =
  | {
      readonly status?: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
      /** Sends `body` up to this many times, without content-length, while the client reads. */
      readonly pieces?: number;
    }
  | "reset"
  | "hang";

/** An HTTP server whose answers a test chooses, valid or not. */
export interface RawServer {
  readonly url: string;
  /** Every request so far, in order. */
  readonly requests: readonly RawRequest[];
  /** Bytes of response bodies written so far. */
  readonly written: number;
  /** Decides the answer. May be replaced at any time. */
  answer: (request: RawRequest) => RawReply | Promise<RawReply>;
  close(): Promise<void>;
}

/** A successful reply of the REST protocol: `{"result": …}`. */
export function result(value: unknown): RawReply {
  return { body: JSON.stringify({ result: value }) };
}

/** Starts a server on a free port of loopback. */
export async function startRawServer(answer: RawServer["answer"]): Promise<RawServer> {
  const requests: RawRequest[] = [];
  let written = 0;
  const server = createServer(async (incoming, outgoing) => {
    const request = await readRequest(incoming);
    requests.push(request);
    await send(await raw.answer(request), outgoing, (bytes) => {
      written += bytes;
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const raw: RawServer = {
    url: `http://127.0.0.1:${port}`,
    requests,
    get written() {
      return written;
    },
    answer,
    async close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      await closed;
    },
  };
  return raw;
}

async function readRequest(incoming: IncomingMessage): Promise<RawRequest> {
  const pieces: Buffer[] = [];
  for await (const piece of incoming) pieces.push(piece as Buffer);
  const body = Buffer.concat(pieces).toString();
  const { method = "", url = "", headers } = incoming;
  return { method, path: url, headers, body, command: commandOf(body) };
}

async function send(
  reply: RawReply,
  outgoing: ServerResponse,
  onWritten: (bytes: number) => void,
): Promise<void> {
  if (reply === "hang") return;
  const { socket } = outgoing.req;
  if (reply === "reset") {
    socket.resetAndDestroy();
    return;
  }
  const body = Buffer.from(reply.body ?? "");
  outgoing.on("error", () => socket.destroy());
  if (reply.pieces === undefined) {
    outgoing.writeHead(reply.status ?? 200, { "content-length": body.length, ...reply.headers });
    outgoing.end(body);
    onWritten(body.length);
    return;
  }
  outgoing.writeHead(reply.status ?? 200, { ...reply.headers });
  for (let piece = 0; piece < reply.pieces && !outgoing.destroyed; piece++) {
    onWritten(body.length);
    if (!outgoing.write(body)) await drainedOrClosed(outgoing);
  }
  outgoing.end();
}

/** Resolves when the client has read on, or has gone away. */
async function drainedOrClosed(outgoing: ServerResponse): Promise<void> {
  const waiting = new AbortController();
  const { signal } = waiting;
  const events = ["drain", "close"].map((event) => once(outgoing, event, { signal }));
  await Promise.allSettled([Promise.race(events)]);
  waiting.abort();
}

function commandOf(body: string): string[] {
  try {
    let command: unknown = JSON.parse(body);
    if (Array.isArray(command) && Array.isArray(command[0])) [command] = command;
    return Array.isArray(command) ? command.map(String) : [];
  } catch {
    // Not a command: only `body` has it.
    return [];
  }
}
