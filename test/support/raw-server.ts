import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";

/** What a {@link RawServer} was sent. */
export interface RawRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
  /** The body as a command, or the first command of a pipeline; empty when it is none. */
  readonly command: readonly string[];
}

/** What it answers: an HTTP response, a broken connection, or nothing at all. */
export type RawReply =
  | {
      readonly status?: number;
      readonly headers?: Readonly<Record<string, string>>;
      readonly body?: string;
      /** Sent again and again with no content-length, as long as the client reads, at most so many times. */
      readonly pieces?: number;
    }
  | "reset"
  | "hang";

/** An HTTP server that answers whatever a test wants, however wrong. */
export interface RawServer {
  readonly url: string;
  /** Everything that arrived, in order. */
  readonly requests: readonly RawRequest[];
  /** Bytes of bodies handed to clients so far. */
  readonly written: number;
  /** May be changed at any time. */
  answer: (request: RawRequest) => RawReply | Promise<RawReply>;
  close(): Promise<void>;
}

/** A reply as Redis's own over REST: `{"result": …}`. */
export function result(value: unknown): RawReply {
  return { body: JSON.stringify({ result: value }) };
}

/** Starts one on a free port of loopback. */
export async function startRawServer(answer: RawServer["answer"]): Promise<RawServer> {
  const requests: RawRequest[] = [];
  let written = 0;
  const server = createServer(async (incoming, outgoing) => {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(piece as Buffer);
    const body = Buffer.concat(pieces).toString();
    const { method = "", url = "", headers } = incoming;
    const request = { method, path: url, headers, body, command: commandOf(body) };
    requests.push(request);
    const reply = await raw.answer(request);
    if (reply === "hang") return;
    if (reply === "reset") {
      incoming.socket.resetAndDestroy();
      return;
    }
    const text = Buffer.from(reply.body ?? "");
    outgoing.on("error", () => incoming.socket.destroy());
    if (reply.pieces === undefined) {
      outgoing.writeHead(reply.status ?? 200, { "content-length": text.length, ...reply.headers });
      outgoing.end(text);
      written += text.length;
      return;
    }
    outgoing.writeHead(reply.status ?? 200, { ...reply.headers });
    for (let piece = 0; piece < reply.pieces && !outgoing.destroyed; piece++) {
      written += text.length;
      if (outgoing.write(text)) continue;
      // Either the client has read on, or it has gone away.
      const drained = new AbortController();
      const { signal } = drained;
      const events = ["drain", "close"].map((event) => once(outgoing, event, { signal }));
      await Promise.allSettled([Promise.race(events)]);
      drained.abort();
    }
    outgoing.end();
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

function commandOf(body: string): string[] {
  try {
    let command: unknown = JSON.parse(body);
    if (Array.isArray(command) && Array.isArray(command[0])) [command] = command;
    return Array.isArray(command) ? command.map(String) : [];
  } catch {
    // Whatever it is, it is recorded as it came.
    return [];
  }
}
