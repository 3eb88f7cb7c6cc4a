import { once } from "node:events";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import { connect } from "node:net";

/** A server of Node on a free port of loopback. */
export interface NodeStand {
  readonly port: number;
  /** Sends a request to it, over HTTP. */
  send(request: Request): Promise<Response>;
  /** A connection on which nothing has been sent. */
  connect(): Promise<Socket>;
  close(): Promise<void>;
}

/** Serves an app of Express or Nest, or any other listener. */
export async function listen(listener: unknown): Promise<NodeStand> {
  const server = createServer(listener as RequestListener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    port,
    ...clientOf(port),
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

/** Sends to a server on this port of loopback. */
export function clientOf(port: number): Pick<NodeStand, "send" | "connect"> {
  return {
    async send(request) {
      const { pathname, search } = new URL(request.url);
      const body = request.body && (await request.arrayBuffer());
      return fetch(`http://127.0.0.1:${port}${pathname}${search}`, {
        method: request.method,
        headers: request.headers,
        signal: request.signal,
        redirect: "manual",
        ...(body && { body }),
      });
    },
    async connect() {
      const socket = connect(port, "127.0.0.1");
      await once(socket, "connect");
      return socket;
    },
  };
}

/** A request as text, for a connection that the test breaks. */
export async function asText(request: Request): Promise<string> {
  const body = await request.text();
  const headers = [...request.headers, ["host", "api.example"], ["content-length", `${body.length}`]];
  const { pathname } = new URL(request.url);
  return [
    `${request.method} ${pathname} HTTP/1.1`,
    ...headers.map(([name, value]) => `${name}: ${value}`),
    "",
    body,
  ].join("\r\n");
}

/** The answer to the retry of a request, as soon as the first one is over. */
export async function answerToRetry(stand: Pick<NodeStand, "send">, retry: () => Request): Promise<Response> {
  for (;;) {
    const answer = await stand.send(retry());
    if (answer.status !== 409) return answer;
  }
}
