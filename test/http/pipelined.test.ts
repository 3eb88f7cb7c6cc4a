import { connect } from "node:net";
import express5 from "express";
import express4 from "express4";
import Fastify from "fastify";
import { afterAll, expect, test } from "vitest";
import { memoryEndpoint } from "../../local/src/memory/index.ts";
import { Redlock } from "../../src/index.ts";
import { idempotentExpress, idempotentFastify } from "../../src/node/index.ts";
import { until } from "../support/until.ts";
import { listen } from "./node-stand.ts";

// Requests that come on one connection without waiting for an answer. Their responses get the connection one after another,
// when the middleware holds the later ones already.

const redlock = new Redlock({ endpoints: [memoryEndpoint({ name: "a", dialect: "upstash" })] });
const closing: (() => unknown)[] = [];
afterAll(() => Promise.all(closing.map((close) => close())));

// biome-ignore lint/suspicious/noExplicitAny: two versions of Express.
async function expressPort(express: any): Promise<number> {
  const app = express().use(idempotentExpress({ redlock }));
  // biome-ignore lint/suspicious/noExplicitAny: see above.
  app.post("/", (req: any, res: any) =>
    setImmediate(() => res.json({ key: req.headers["idempotency-key"] })),
  );
  const { port, close } = await listen(app);
  closing.push(close);
  return port;
}

async function fastifyPort(): Promise<number> {
  const app = Fastify({ forceCloseConnections: true }).register(idempotentFastify({ redlock }));
  app.register(async (routes) => {
    routes.post("/", async ({ headers }) => ({ key: headers["idempotency-key"] }));
  });
  await app.listen({ port: 0, host: "127.0.0.1" });
  closing.push(() => app.close());
  return (app.server.address() as { port: number }).port;
}

test.each([
  ["Express 5", () => expressPort(express5)],
  ["Express 4", () => expressPort(express4)],
  ["Fastify", fastifyPort],
])("%s answers all, in their order", async (framework, portOf) => {
  const socket = connect(await portOf(), "127.0.0.1");
  closing.push(() => socket.destroy());
  let text = "";
  socket.setEncoding("utf8").on("data", (piece) => {
    text += piece;
  });
  const keys = [1, 2, 3].map((number) => `${framework} ${number}`);
  const request = (key: string) =>
    `POST / HTTP/1.1\r\nHost: a.example\r\nIdempotency-Key: ${key}\r\nContent-Length: 0\r\n\r\n`;
  socket.write(keys.map(request).join(""));
  const answered = () => Array.from(text.matchAll(/\{"key":"([^"]*)"\}/g), ([, key]) => key);
  await until(() => answered().length === 3, "three answers");
  expect(answered()).toEqual(keys);
});
