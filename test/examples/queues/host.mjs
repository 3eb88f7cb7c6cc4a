// Runs a bundled example in a process of its own: what exports POST as Vercel does, what exports handler as Lambda does, with
// the event as the request's body.

import { createServer } from "node:http";
import { json } from "node:stream/consumers";
import { pathToFileURL } from "node:url";
import { createRequestListener } from "@remix-run/node-fetch-server";

const [, , file] = process.argv;
const { POST, handler } = await import(pathToFileURL(file).href);

async function invoke(incoming, outgoing) {
  try {
    const result = await handler(await json(incoming), { getRemainingTimeInMillis: () => 30_000 });
    outgoing.end(JSON.stringify(result));
  } catch (error) {
    outgoing.writeHead(502).end(String(error));
  }
}

const server = createServer(POST ? createRequestListener(POST) : invoke);
server.listen(0, "127.0.0.1", () => console.log(`listening on ${server.address().port}`));
