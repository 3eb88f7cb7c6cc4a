// The webhook on Node. `@hono/node-server` does the same, and more.

import { once } from "node:events";
import { createServer, type IncomingMessage } from "node:http";
import { text } from "node:stream/consumers";
import { type Bindings, chat } from "./app.ts";

// A deployment ends the process: the current message is answered, and the next process gets the others.
const stopped = new AbortController();
const app = chat(stopped.signal);
const context = { waitUntil: () => undefined, passThroughOnException: () => undefined, props: {} };

const server = createServer(async (incoming, outgoing) => {
  const response = await app.fetch(await requestOf(incoming), process.env as unknown as Bindings, context);
  outgoing.writeHead(response.status, { connection: "close" }).end(await response.text());
});
process.once("SIGTERM", () => {
  stopped.abort();
  server.close();
});
server.listen(Number(process.env.PORT ?? 8787));
await once(server, "listening");
console.log(JSON.stringify(server.address()));

async function requestOf(incoming: IncomingMessage): Promise<Request> {
  const { method = "GET", url = "/", headers } = incoming;
  const body = method === "POST" ? await text(incoming) : null;
  return new Request(new URL(url, "http://localhost"), {
    method,
    headers: { authorization: headers.authorization ?? "" },
    body,
  });
}
