import { randomBytes } from "node:crypto";
import { once } from "node:events";
import {
  Agent,
  createServer,
  type IncomingMessage,
  request,
  type Server,
  type ServerResponse,
} from "node:http";
import { connect as connectHttp2, constants } from "node:http2";
import type { AddressInfo } from "node:net";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import compression from "compression";
import Fastify, { type FastifyReply } from "fastify";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import type { HttpRules } from "../../src/http/index.ts";
import { idempotentExpress, idempotentFastify } from "../../src/node/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { gate } from "../support/link.ts";
import { forgetUndefinedModules } from "../support/require-cache.ts";
import { type Client, clientOf } from "../support/stores.ts";
import { until } from "../support/until.ts";
import { answerToRetry, clientOf as senderTo } from "./node-stand.ts";
import { opened, post, seen } from "./stand.ts";

// What reaches the network, and when, without a framework in between.

const at = opened();
let client: Client;
const servers: Server[] = [];
beforeAll(forgetUndefinedModules);
afterEach(async () => {
  for (const server of servers.splice(0)) {
    server.closeAllConnections();
    if (server.listening) await once(server.close(), "close");
  }
});

type Route = (req: IncomingMessage, res: ServerResponse) => unknown;

/** A server with one guarded handler. */
async function serve(route: Route, before: Route = () => undefined, rules: HttpRules = {}) {
  client = clientOf(at.store);
  const guarded = idempotentExpress({ redlock: client.redlock, ...rules });
  const server = createServer((req, res) => {
    before(req, res);
    guarded(req, res, () => void route(req, res));
  }).listen(0, "127.0.0.1");
  servers.push(server);
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { server, port, ...senderTo(port) };
}

test("a server that closes its idle connections keeps those with a response that is being stored", async () => {
  const stored = gate();
  const stand = await serve((_req, res) => {
    for (const link of client.links) link.fate = () => ({ before: () => stored.passed });
    res.end("done");
  });
  const answer = stand.send(post());
  await until(() => client.links.every(({ pending }) => pending > 0), "the response to be stored");
  stand.server.close();
  stand.server.closeIdleConnections();
  stored.open();
  expect(await (await answer).text()).toBe("done");
});

test("a connection carries the next request, also where nobody has read the body", async () => {
  const stand = await serve((_req, res) => res.end("ok"));
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  const reused: boolean[] = [];
  for (let times = 0; times < 2; times += 1) {
    const headers = { "idempotency-key": freshKey() };
    const sent = request({ port: stand.port, host: "127.0.0.1", agent, method: "POST", headers });
    sent.end(randomBytes(900_000));
    const [answer] = (await once(sent, "response")) as [IncomingMessage];
    expect(await text(answer)).toBe("ok");
    reused.push(sent.reusedSocket);
  }
  agent.destroy();
  expect(reused).toEqual([false, true]);
});

test("a handler may write its Buffer again: the answer has the bytes of each time", async () => {
  const stand = await serve((_req, res) => {
    const chunk = Buffer.from("one ");
    res.write(chunk, () => {
      chunk.write("two ");
      res.end(chunk);
    });
  });
  expect(await (await stand.send(post())).text()).toBe("one two ");
});

test("a stream that is compressed further out is heard when there is room again", async () => {
  const bytes = randomBytes(3_000_000);
  const stand = await serve(
    (_req, res) => {
      const chunks = Array.from({ length: 300 }, (_, at) => bytes.subarray(at * 10_000, (at + 1) * 10_000));
      Readable.from(chunks, { objectMode: false }).pipe(res);
    },
    (req, res) => {
      res.setHeader("content-type", "text/plain");
      compression()(req, res, () => undefined);
    },
  );
  const { bytes: received, headers } = await seen(await stand.send(post()));
  expect(headers["content-encoding"]).toBe("gzip");
  expect(Buffer.from(received).equals(bytes)).toBe(true);
});

test.each([
  ["/a?b=%20", "a.example/a?b=%20"],
  ["//evil.example/a", "a.example//evil.example/a"],
  ["http://b.example/a", "b.example/a"],
  ["/a/b", "localhost/a/b", " "],
])("%s is the address of %s", async (path, address, host = "a.example") => {
  const addresses: string[] = [];
  const fingerprint = ({ url }: Request) => void addresses.push(url);
  const { port } = await serve((_req, res) => res.end(), undefined, { fingerprint });
  const headers = { "idempotency-key": freshKey(), host };
  const sent = request({ port, host: "127.0.0.1", method: "POST", path, headers }).end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  answer.resume();
  expect(addresses).toEqual([`http://${address}`]);
});

test("a response has no listeners more: Node warns of the eleventh", async () => {
  const counted: unknown[] = [];
  const count: Route = (_req, res) =>
    counted.push(res.eventNames().map((event) => [event, res.listenerCount(event)]));
  const stand = await serve((req, res) => {
    count(req, res);
    res.end();
  }, count);
  await (await stand.send(post())).text();
  expect(counted[1]).toEqual(counted[0]);
});

test("a server that ends the connection by its timeout does not free the key of a handler that runs", async () => {
  const go = gate();
  let runs = 0;
  const stand = await serve(async (req, res) => {
    runs += 1;
    res.write("a");
    req.socket.emit("timeout");
    await go.passed;
    res.end("b");
  });
  const key = freshKey();
  await expect(stand.send(post(key))).rejects.toThrow();
  expect((await stand.send(post(key))).status).toBe(409);
  go.open();
  const again = await answerToRetry(stand, () => post(key));
  expect([runs, await again.text()]).toEqual([1, "ab"]);
});

describe("HTTP/2", () => {
  /** A session with a server of one route, and what a request to it gets. */
  async function open(route: (reply: FastifyReply) => unknown) {
    client = clientOf(at.store);
    const app = Fastify({ http2: true });
    app.register(idempotentFastify({ redlock: client.redlock }));
    app.register(async (guarded) => {
      guarded.post("/payments", async (_, reply) => route(reply));
    });
    const session = connectHttp2(await app.listen({ port: 0, host: "127.0.0.1" }));
    const key = freshKey();
    const send = () => {
      const type = { "content-type": "application/json" };
      const stream = session.request({
        ":method": "POST",
        ":path": "/payments",
        "idempotency-key": key,
        ...type,
      });
      stream.on("error", () => undefined);
      return stream.end('{"amount":10}');
    };
    const answer = async () => {
      const stream = send();
      const [headers] = await once(stream, "response");
      return [headers[":status"], headers["idempotent-replayed"], await text(stream)];
    };
    const close = () => {
      session.close();
      return app.close();
    };
    return { send, answer, close };
  }

  test("a client that leaves behind the first byte: its retry gets the answer", async () => {
    const started = gate<FastifyReply["raw"]>();
    const left = gate();
    let runs = 0;
    const { send, answer, close } = await open(async (reply) => {
      runs += 1;
      reply.hijack().raw.write("a");
      started.open(reply.raw);
      await left.passed;
      reply.raw.end("b");
    });
    const stream = send();
    const { stream: served } = (await started.passed) as unknown as { stream: { destroyed: boolean } };
    stream.close(constants.NGHTTP2_CANCEL);
    await until(() => served.destroyed, "the server to notice");
    left.open();
    let again: unknown[];
    do again = await answer();
    while (again[0] === 409);
    await close();
    expect([runs, ...again]).toEqual([1, 200, "true", "ab"]);
  });
});

test("an array of headers keeps each value of a name, also in a replay", async () => {
  const headers = ["link", "a", "link", "b"];
  const stand = await serve((_req, res) => res.writeHead(201, headers).end("x"));
  const key = freshKey();
  for (let times = 0; times < 2; times += 1) {
    expect((await stand.send(post(key))).headers.get("link")).toBe("a, b");
  }
});
