// The app on Node's own HTTP server. `@hono/node-server` does the same, and more.

import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { app } from "./app.ts";

const server = createServer((incoming, outgoing) => {
  answer(incoming, outgoing).catch(() => outgoing.destroy());
});
// Running requests are answered, then the process exits by itself: a deployment leaves no lease behind.
process.once("SIGTERM", () => server.close());
server.listen(Number(process.env.PORT ?? 3000));
await once(server, "listening");
console.log(JSON.stringify(server.address()));

async function answer(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
  const closed = new AbortController();
  outgoing.once("close", () => closed.abort());
  const response = await app.fetch(requestOf(incoming, closed.signal));
  outgoing.statusCode = response.status;
  outgoing.setHeaders(response.headers);
  // A connection that the client keeps open would keep the process alive.
  if (!server.listening) outgoing.setHeader("connection", "close");
  if (response.body) await pipeline(response.body, outgoing);
  else outgoing.end();
}

function requestOf(incoming: IncomingMessage, signal: AbortSignal): Request {
  const { method = "GET", url = "/", headers } = incoming;
  const sent = new Headers();
  for (const [name, value = []] of Object.entries(headers)) {
    for (const each of [value].flat()) sent.append(name, each);
  }
  const body = method === "GET" || method === "HEAD" ? null : (Readable.toWeb(incoming) as BodyInit);
  // The fetch standard requires `duplex` for a stream; not all type libraries know it.
  const init: RequestInit & { duplex: "half" } = { method, headers: sent, body, signal, duplex: "half" };
  return new Request(new URL(url, `http://${headers.host ?? "localhost"}`), init);
}
