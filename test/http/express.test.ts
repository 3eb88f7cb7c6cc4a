import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { gzipSync } from "node:zlib";
import cors from "cors";
import express5 from "express";
import express4 from "express4";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { pendingText } from "../../src/idempotency/record.ts";
import { idempotentExpress, type NodeOptions, type NodeRequest } from "../../src/node/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { gate } from "../support/link.ts";
import {
  allArrived,
  type Client,
  clientOf,
  type OpenStore,
  recordName,
  recordsOf,
} from "../support/stores.ts";
import { until } from "../support/until.ts";
import { answerToRetry, asText, listen, type NodeStand } from "./node-stand.ts";
import { delivery, post, problemIn, provider, seen, stores } from "./stand.ts";

// biome-ignore lint/suspicious/noExplicitAny: Express has no types of its own
type Any = any;
type Route = (req: Any, res: Any, next: Any) => unknown;

let store: OpenStore;
let client: Client;
const stands: NodeStand[] = [];
beforeAll(async () => {
  store = await stores[0]!.open();
  client = clientOf(store);
});
afterEach(() => Promise.all(stands.splice(0).map((stand) => stand.close())));
afterAll(() => store.close());

const guard = (options: Partial<NodeOptions<NodeRequest>> = {}) =>
  idempotentExpress({ redlock: client.redlock, timeout: 10_000, onEvent: () => undefined, ...options });
const free = async (key: string) =>
  (await recordsOf(store, key, [], "http")).every((record) => record === null);

async function serve(app: Any): Promise<NodeStand> {
  const stand = await listen(app);
  stands.push(stand);
  return stand;
}

describe.each([
  ["Express 5", express5 as Any],
  ["Express 4", express4],
])("%s", (_name, express) => {
  /** An app with one guarded route, whose errors are not written to the console. */
  const appWith = (route: Route, options?: Partial<NodeOptions<NodeRequest>>, ...before: Route[]) =>
    express()
      .set("env", "test")
      .all("*any".replace("any", express === express4 ? "" : "any"), ...before, guard(options), route);

  test("five deliveries act once", async () => {
    let runs = 0;
    let arrived = 0;
    const allHere = gate();
    const count: Route = (_req, _res, next) => {
      arrived += 1;
      if (arrived === 5) allHere.open();
      next();
    };
    const app = appWith(
      async (req, res) => {
        runs += 1;
        await allHere.passed;
        res.json({ run: runs, id: req.webhook.id, body: Buffer.from(req.webhook.body).toString() });
      },
      { provider, wait: 10_000 },
      count,
    );
    const stand = await serve(app);
    const id = freshKey();
    const answers = await Promise.all([1, 2, 3, 4, 5].map(() => stand.send(delivery(id))));
    const all = await Promise.all(answers.map(seen));
    expect(runs).toBe(1);
    expect(new Set(all.map(({ status, bytes }) => `${status} ${Buffer.from(bytes)}`))).toEqual(
      new Set([`200 {"run":1,"id":"${id}","body":"{\\"zen\\":\\"ok\\"}"}`]),
    );
  });

  const png = randomBytes(5_000);
  test.each<[string, Route]>([
    ["json", (_, res) => res.status(201).json({ id: 7 })],
    ["bytes", (_, res) => res.type("image/png").send(png)],
    [
      "write and end",
      (_, res) => {
        res.write("caf\u00e9", "latin1");
        res.write(Buffer.from("b"));
        res.end("c");
      },
    ],
    ["a file", (_, res) => res.sendFile("package.json", { root: "." })],
    ["a pipe", (_, res) => Readable.from([Buffer.from("a"), png, Buffer.from("c")]).pipe(res.type("bin"))],
    ["a pipeline", (_, res) => void pipeline(Readable.from([png, png]), res)],
    ["no body", (_, res) => res.sendStatus(204)],
    ["nothing", (_, res) => res.end()],
    ["not modified", (_, res) => res.status(304).end()],
    ["a redirect", (_, res) => res.redirect(303, "/elsewhere")],
    ["writeHead", (_, res) => res.writeHead(202, "Fine", { "x-a": "1", "x-b": ["2", "3"] }).end("x")],
    ["writeHead, flat", (_, res) => res.writeHead(202, ["x-a", "1", "x-a", "2"]).end(Buffer.from("x"))],
    ["waiting for callbacks", (_, res) => res.write("a", () => res.write("b", () => res.end("c")))],
  ])("replays byte for byte: %s", async (_what, route) => {
    let runs = 0;
    const app = appWith((req, res, next) => {
      runs += 1;
      return route(req, res, next);
    });
    const plain = await serve(express().all("/payments", route));
    const stand = await serve(app);
    const key = freshKey();
    const unguarded = await seen(await plain.send(post(key)));
    const first = await seen(await stand.send(post(key)));
    const again = await seen(await stand.send(post(key)));
    expect(runs).toBe(1);
    const { date: _1, "transfer-encoding": _2, "content-length": _3, ...headers } = first.headers;
    expect(again.bytes).toEqual(unguarded.bytes);
    expect(first.bytes).toEqual(unguarded.bytes);
    expect(Object.keys(first.headers).sort()).toEqual(
      expect.arrayContaining(
        Object.keys(unguarded.headers)
          .filter((n) => !/length|transfer/.test(n))
          .sort(),
      ),
    );
    expect(again).toMatchObject({ status: unguarded.status, headers });
    expect(again.headers["idempotent-replayed"]).toBe("true");
  });

  test("a duplicate of a request under way is refused, and gets the response later", async () => {
    const started = gate();
    const finish = gate();
    const app = appWith(async (_, res) => {
      started.open();
      await finish.passed;
      res.json({ done: true });
    });
    const stand = await serve(app);
    const key = freshKey();
    const first = stand.send(post(key));
    await started.passed;
    expect(await problemIn(await stand.send(post(key)))).toEqual({ status: 409, code: "IN_PROGRESS" });
    finish.open();
    expect(await (await first).json()).toEqual({ done: true });
    expect((await stand.send(post(key))).headers.get("idempotent-replayed")).toBe("true");
    const other = post(key, { body: "{}" });
    expect(await problemIn(await stand.send(other))).toEqual({ status: 422, code: "FINGERPRINT_MISMATCH" });
    expect(await problemIn(await stand.send(post(null)))).toEqual({ status: 400, code: "KEY_MISSING" });
  });

  const failures: [string, Route][] = [
    [
      "throws",
      () => {
        throw new Error("boom");
      },
    ],
    ["calls next with an error", (_req, _res, next) => setImmediate(next, new Error("boom"))],
    [
      "throws after it has begun to write",
      (_req, res) => {
        res.write("half");
        throw new Error("boom");
      },
    ],
    ["destroys its response", (_req, res) => res.write("half") && res.destroy(new Error("boom"))],
    ["answers 503", (_req, res) => res.status(503).end()],
    ["gives a status that is none", (_req, res) => res.writeHead(799).end()],
  ];
  if (express === express5) failures.push(["rejects", () => Promise.reject(new Error("boom"))]);
  test.each(failures)("a handler that %s runs again", async (what, route) => {
    let runs = 0;
    const app = appWith((req, res, next) => {
      runs += 1;
      return runs === 1 ? route(req, res, next) : res.send("second time");
    });
    const stand = await serve(app);
    const key = freshKey();
    const first = stand.send(post(key)).then(async (response) => [response.status, await response.text()]);
    if (/write|destroys/.test(what)) await expect(first).rejects.toThrow();
    else expect((await first)[0]).toBeGreaterThanOrEqual(500);
    await until(() => free(key), "the key to be free");
    expect(await (await stand.send(post(key))).text()).toBe("second time");
  });

  test("what an error handler answers is a response like any other", async () => {
    const app = appWith((_req, _res, next) => next(new Error("no such account")));
    let errors = 0;
    app.use((error: Error, _req: Any, res: Any, _next: Any) => {
      errors += 1;
      res.status(404).json({ error: error.message });
    });
    const stand = await serve(app);
    const key = freshKey();
    const [first, again] = [await seen(await stand.send(post(key))), await seen(await stand.send(post(key)))];
    expect([first.status, again.status, errors]).toEqual([404, 404, 1]);
    expect(again.bytes).toEqual(first.bytes);
  });

  test("a response that the handler destroys is no error for Express", async () => {
    const app = appWith((_req, res) => res.write("half") && res.destroy());
    let errors = 0;
    app.use((_error: Error, _req: Any, _res: Any, next: Any) => {
      errors += 1;
      next();
    });
    const stand = await serve(app);
    const key = freshKey();
    await expect(stand.send(post(key))).rejects.toThrow();
    await until(() => free(key), "the key to be free");
    expect(errors).toBe(0);
  });

  test("an error of the option store is Express's, and the key is free", async () => {
    const app = appWith((_req, res) => res.status(201).json({ mine: true }), {
      store() {
        throw new Error("boom");
      },
    });
    const stand = await serve(app);
    const key = freshKey();
    const answer = await stand.send(post(key));
    expect([answer.status, await answer.text()]).toEqual([500, expect.stringContaining("boom")]);
    expect(await free(key)).toBe(true);
  });

  test("a second answer of the handler is refused as Express refuses it, and changes nothing", async () => {
    const seenBy: unknown[] = [];
    const app = appWith((_req, res) => {
      res.json({ first: true });
      res.status(500);
      for (const again of [() => res.json({ second: true }), () => res.writeHead(500)]) {
        try {
          again();
        } catch (error) {
          seenBy.push((error as { code?: string }).code);
        }
      }
      seenBy.push(res.headersSent, res.writableEnded);
    });
    const stand = await serve(app);
    const response = await stand.send(post());
    expect([response.status, await response.json()]).toEqual([200, { first: true }]);
    expect(seenBy).toEqual(["ERR_HTTP_HEADERS_SENT", "ERR_HTTP_HEADERS_SENT", true, true]);
  });

  test("finish is emitted once, when the response is stored and sent", async () => {
    const seenAt: (number | boolean)[] = [];
    const key = freshKey();
    const app = appWith((_req, res) => {
      res.on("finish", async () => seenAt.push(res.statusCode, await free(key)));
      res.end("x", () => seenAt.push(0));
    });
    const stand = await serve(app);
    await (await stand.send(post(key))).text();
    await until(() => seenAt.length === 3);
    expect(seenAt).toEqual([0, 200, false]);
  });

  test("a body that is too large passes on, and its duplicate gets the status", async () => {
    const piece = randomBytes(50_000);
    const hear: boolean[] = [];
    const app = appWith(
      async (_req, res) => {
        res.type("bin");
        for (let count = 0; count < 100; count += 1) {
          const hasRoom = res.write(piece);
          hear.push(hasRoom);
          if (!hasRoom) await once(res, "drain");
        }
        res.end();
      },
      { maxResponseBody: 100_000 },
    );
    const stand = await serve(app);
    const key = freshKey();
    const first = await seen(await stand.send(post(key)));
    expect(Buffer.from(first.bytes).equals(Buffer.concat(Array(100).fill(piece)))).toBe(true);
    expect(hear).toContain(false);
    const again = await seen(await stand.send(post(key)));
    expect(again).toMatchObject({ status: 200, headers: { "idempotent-body": "omitted" } });
    expect(again.bytes).toHaveLength(0);
  });

  test("a large file that is piped passes on whole", async () => {
    const bytes = randomBytes(3_000_000);
    const app = appWith((_req, res) => {
      const chunks = Array.from({ length: 300 }, (_, index) =>
        bytes.subarray(index * 10_000, (index + 1) * 10_000),
      );
      Readable.from(chunks, { objectMode: false, highWaterMark: 16_384 }).pipe(res);
    });
    const stand = await serve(app);
    const { bytes: got } = await seen(await stand.send(post()));
    expect(Buffer.from(got).equals(bytes)).toBe(true);
  });

  test.each([[{ "content-type": "text/event-stream" }], [{ "transfer-encoding": "chunked" }]])(
    "events are sent at once: %o",
    async (headers) => {
      const more = gate();
      const app = appWith(async (_req, res) => {
        res.writeHead(200, headers);
        res.flushHeaders();
        res.write("data: 1\n\n");
        await more.passed;
        res.end("data: 2\n\n");
      });
      const stand = await serve(app);
      const reader = (await stand.send(post())).body!.getReader();
      expect(Buffer.from((await reader.read()).value!).toString()).toBe("data: 1\n\n");
      more.open();
      expect(Buffer.from((await reader.read()).value!).toString()).toBe("data: 2\n\n");
      expect((await reader.read()).done).toBe(true);
    },
  );

  test("a client that goes away does not stop the handler; its retry gets the response", async () => {
    const started = gate<Any>();
    const finish = gate();
    let runs = 0;
    const app = appWith(async (req, res) => {
      runs += 1;
      started.open(res);
      await finish.passed;
      expect(req.idempotency.signal.aborted).toBe(false);
      res.json({ runs });
    });
    const stand = await serve(app);
    const key = freshKey();
    const socket = await stand.connect();
    socket.write(await asText(post(key)));
    const res = await started.passed;
    socket.destroy();
    await until(() => res.destroyed, "the server to notice");
    finish.open();
    const again = await answerToRetry(stand, () => post(key));
    expect([runs, await again.json()]).toEqual([1, { runs: 1 }]);
  });

  test.each(["destroy", "resetAndDestroy"] as const)(
    "a client that goes away (%s) while a stream is piped: the handler does not run again",
    async (leave) => {
      const started = gate<Any>();
      let runs = 0;
      const app = appWith((_req, res) => {
        runs += 1;
        const source = new Readable({ read: () => undefined });
        source.push("first part");
        source.pipe(res);
        source.once("data", () => started.open(res));
      });
      const stand = await serve(app);
      const key = freshKey();
      const socket = await stand.connect();
      socket.on("error", () => undefined);
      socket.write(await asText(post(key)));
      await started.passed;
      socket[leave]();
      const again = await answerToRetry(stand, () => post(key));
      expect([runs, again.headers.get("idempotent-body")]).toEqual([1, "omitted"]);
    },
  );

  describe("a client that goes away before the handler has the body", () => {
    const errors: string[] = [];
    const app = (before: Route, options: Partial<NodeOptions<NodeRequest>>, between: Route) => {
      errors.length = 0;
      const made = express().set("env", "test");
      const parse: Route = (req, res) =>
        req.body?.amount === 10 ? res.json({ paid: true }) : res.status(400).json({ missing: "amount" });
      made.post("/payments", before, guard(options), between, express.json(), parse);
      return made.use((error: Error, _req: Any, res: Any, _next: Any) => {
        errors.push(error.message);
        res.status(400).end();
      });
    };
    const json = (key: string) => post(key, { headers: { "content-type": "application/json" } });

    test.each(["while its client is looked up", "while its key is claimed", "while it is authenticated"])(
      "%s: the retry is handled",
      async (when) => {
        const here = gate<Any>();
        const go = gate();
        const other = clientOf(store);
        let requests = 0;
        let response: Any;
        const note: Route = (_req, res, next) => {
          requests += 1;
          response ??= res;
          next();
        };
        const first = async () => {
          here.open(response);
          await go.passed;
        };
        const isAt = (place: string) => when.includes(place) && requests === 1;
        for (const link of other.links) {
          link.fate = () => (isAt("claimed") ? { before: first } : "delivered");
        }
        const stand = await serve(
          app(
            note,
            {
              redlock: async () => {
                if (isAt("looked")) await first();
                return other.redlock;
              },
            },
            async (_req, _res, next) => {
              if (isAt("authenticated")) await first();
              next();
            },
          ),
        );
        const key = freshKey();
        const socket = await stand.connect();
        socket.write(await asText(json(key)));
        const res = await here.passed;
        socket.destroy();
        await until(() => res.destroyed, "the server to notice");
        go.open();
        const again = await answerToRetry(stand, () => json(key));
        expect([again.status, await again.json()]).toEqual([200, { paid: true }]);
        if (when.includes("looked")) {
          await until(() => errors.length > 0, "the error of the first request");
          expect(errors).toEqual([expect.stringContaining("the client has gone")]);
        }
      },
    );
  });

  test("cookies are for the first client only", async () => {
    const app = appWith((_req, res) => res.cookie("a", "1").cookie("b", "2").send("x"));
    const stand = await serve(app);
    const key = freshKey();
    expect((await stand.send(post(key))).headers.getSetCookie()).toHaveLength(2);
    expect((await stand.send(post(key))).headers.getSetCookie()).toEqual([]);
  });

  test("HEAD: the duplicate has the headers too, and no body", async () => {
    const app = appWith((_req, res) => res.set("x-a", "1").send("text"), { methods: ["HEAD"] });
    const stand = await serve(app);
    const key = freshKey();
    const head = () => stand.send(post(key, { method: "HEAD", body: null }));
    const [first, again] = [await seen(await head()), await seen(await head())];
    expect(first.headers["x-a"]).toBe("1");
    expect(again).toMatchObject({ status: 200, headers: { "x-a": "1", "idempotent-replayed": "true" } });
  });

  describe("the request's body", () => {
    const echo: Route = (req, res) => res.send({ body: req.body ?? null });
    const json = (key: string, body = '{"amount": 10}') =>
      post(key, { body, headers: { "content-type": "application/json" } });

    test.each(["", '{"amount": 10}', JSON.stringify({ text: "x".repeat(90_000) })])(
      "can be parsed behind: %#",
      async (body) => {
        const app = express().post("/payments", guard(), express.json(), echo);
        const stand = await serve(app);
        const answer = await (await stand.send(json(freshKey(), body))).json();
        expect(answer.body ?? {}).toEqual(body ? JSON.parse(body) : {});
      },
    );

    test("arrives in pieces, and can be parsed behind", async () => {
      const app = express().post("/payments", guard(), express.json(), echo);
      const stand = await serve(app);
      const text = await asText(json(freshKey()));
      const socket = await stand.connect();
      const pieces = [text.slice(0, -8), text.slice(-8, -3), text.slice(-3)];
      for (const piece of pieces) {
        socket.write(piece);
        await new Promise((done) => setImmediate(done));
      }
      const [answer] = await once(socket, "data");
      expect(String(answer)).toContain('{"body":{"amount":10}}');
      socket.destroy();
    });

    test("that was parsed before counts for a key", async () => {
      const stand = await serve(express().use(express.json()).post("/payments", guard(), echo));
      const key = freshKey();
      expect(await (await stand.send(json(key))).json()).toEqual({ body: { amount: 10 } });
      expect((await stand.send(json(key))).headers.get("idempotent-replayed")).toBe("true");
      expect((await stand.send(json(key, '{"amount":11}'))).status).toBe(422);
    });

    const failing = (app: Any) => {
      const errors: Error[] = [];
      app.use((error: Error, _req: Any, res: Any, _next: Any) => {
        errors.push(error);
        res.status(500).end();
      });
      return errors;
    };

    test("that was parsed before has no bytes for a signature: the error says what to do", async () => {
      const app = express()
        .use(express.json({ type: () => true }))
        .post("/hook", guard({ provider }), echo);
      const errors = failing(app);
      const stand = await serve(app);
      expect((await stand.send(delivery(freshKey()))).status).toBe(500);
      expect(errors).toEqual([expect.any(TypeError)]);
      expect(errors[0]!.message).toContain('express.raw({ type: "*/*" })');
    });

    test("that was parsed before is no form with files", async () => {
      const parse = express.text({ type: "multipart/*" });
      const app = express().post("/payments", parse, guard(), echo);
      const errors = failing(app);
      const stand = await serve(app);
      const headers = { "content-type": "multipart/form-data; boundary=b" };
      expect((await stand.send(post(freshKey(), { body: "--b--", headers }))).status).toBe(500);
      expect(errors[0]!.message).toContain("mount this before the body parser");
    });

    test("that express.raw has read is verified", async () => {
      const raw = express.raw({ type: "*/*" });
      const stand = await serve(express().use(raw).post("/hook", guard({ provider }), echo));
      const id = freshKey();
      expect((await stand.send(delivery(id))).status).toBe(200);
      expect((await stand.send(delivery(id))).headers.get("idempotent-replayed")).toBe("true");
      const forged = delivery(id, { signedWith: "another" });
      expect(await problemIn(await stand.send(forged))).toEqual({ status: 401, code: "WEBHOOK_INVALID" });
    });

    test("that is too large is 413, also without its length, and the connection ends", async () => {
      const stand = await serve(appWith(echo, { maxRequestBody: 100_000 }));
      const large = post(freshKey(), { body: "x".repeat(100_001) });
      expect(await problemIn(await stand.send(large))).toEqual({ status: 413, code: "BODY_TOO_LARGE" });
      const chunks = new ReadableStream({
        pull: (controller) => controller.enqueue(new Uint8Array(60_000)),
      });
      const endless = await fetch(`http://127.0.0.1:${stand.port}/payments`, {
        method: "POST",
        headers: { "idempotency-key": freshKey() },
        body: chunks,
        duplex: "half",
      } as RequestInit);
      expect(endless.headers.get("connection")).toBe("close");
      expect(await problemIn(endless)).toEqual({ status: 413, code: "BODY_TOO_LARGE" });
    });

    test("that its client does not finish is an error for Express, and takes no key", async () => {
      const app = appWith(echo);
      const errors = failing(app);
      const stand = await serve(app);
      const key = freshKey();
      const socket = await stand.connect();
      socket.write((await asText(post(key))).slice(0, -3));
      await new Promise((done) => setImmediate(done));
      socket.destroy();
      await until(() => errors.length > 0);
      expect(errors[0]).toMatchObject({ status: 400 });
      expect(await free(key)).toBe(true);
    });
  });

  describe("middleware further out", () => {
    /** As the package `compression` does it. */
    const compress: Route = (_req, res, next) => {
      const { write, end, writeHead } = res;
      const parts: Buffer[] = [];
      res.writeHead = function (...given: unknown[]) {
        res.removeHeader("content-length");
        res.setHeader("content-encoding", "gzip");
        return writeHead.apply(this, given);
      };
      res.write = (chunk: Buffer) => parts.push(Buffer.from(chunk)) > 0;
      res.end = (chunk?: Buffer) => {
        if (chunk) parts.push(Buffer.from(chunk));
        const bytes = gzipSync(Buffer.concat(parts));
        return write.call(res, bytes) && end.call(res);
      };
      next();
    };

    test("compresses, and adds CORS headers for each origin, also to replays and refusals", async () => {
      let requests = 0;
      const counted: Route = (_req, res, next) => {
        requests += 1;
        res.set("x-request", `${requests}`);
        next();
      };
      const allow = cors({ origin: true, credentials: true });
      const app = appWith(
        (_req, res) => res.set("x-of", "handler").json({ ok: true }),
        {},
        allow,
        counted,
        compress,
      );
      const stand = await serve(app);
      const key = freshKey();
      const from = async (origin: string, given: string | null = key) =>
        seen(await stand.send(post(given, { headers: { origin } })));
      const [first, again] = [await from("https://a.example"), await from("https://b.example")];
      const refused = await from("https://c.example", null);
      expect([first, again, refused].map(({ headers }) => headers["x-request"])).toEqual(["1", "2", "3"]);
      expect([first, again, refused].map(({ headers }) => headers["access-control-allow-origin"])).toEqual(
        ["a", "b", "c"].map((name) => `https://${name}.example`),
      );
      expect([first, again].map(({ headers }) => headers["x-of"])).toEqual(["handler", "handler"]);
      expect(again.headers).toMatchObject({ "content-encoding": "gzip", "idempotent-replayed": "true" });
      expect(Buffer.from(again.bytes).toString()).toBe('{"ok":true}');
      expect(again.headers["idempotent-body"]).toBeUndefined();
    });

    test("knows the run, how it was answered, and a duplicate's delivery", async () => {
      const seenBy: unknown[] = [];
      const watch: Route = (req, res, next) => {
        res.on("finish", () => seenBy.push([req.idempotency?.status, req.webhook?.id]));
        next();
      };
      const stand = await serve(appWith((_req, res) => res.end(), { provider }, watch));
      const id = freshKey();
      for (let times = 0; times < 2; times += 1) await stand.send(delivery(id));
      await until(() => seenBy.length === 2);
      expect(seenBy).toEqual([
        ["executed", id],
        [undefined, id],
      ]);
    });
  });

  test("the whole path counts, also in a router", async () => {
    const router = express.Router().post("/payments", guard(), (_req: Any, res: Any) => res.send("ok"));
    const stand = await serve(express().use("/a", router).use("/b", router));
    const key = freshKey();
    expect((await stand.send(post(key, { path: "/a/payments" }))).status).toBe(200);
    expect((await stand.send(post(key, { path: "/b/payments" }))).status).toBe(422);
  });

  test("options may be functions of the request; with a lock there is a fence", async () => {
    const app = appWith((req, res) => res.json({ fence: req.idempotency.fence }), {
      redlock: () => client.redlock,
      scope: (req) => String(req.headers["x-tenant"]),
      lock: (req) => `account:${req.headers["x-tenant"]}`,
    });
    const stand = await serve(app);
    const key = freshKey();
    const fences = [];
    for (const tenant of ["a", "b", "a"]) {
      const answer = await stand.send(post(key, { headers: { "x-tenant": tenant } }));
      fences.push((await answer.json()).fence);
    }
    expect(fences[0]).toBeGreaterThan(0);
    expect(fences[2]).toBe(fences[0]);
  });

  test("where another run took over, its answer is sent instead, without the handler's headers", async () => {
    const key = freshKey();
    const further: Route = (_req, res, next) => {
      res.set("x-outer", "1");
      next();
    };
    const app = appWith(
      async (_req, res) => {
        await allArrived(client.links);
        const name = await recordName(key, [], "http");
        const text = pendingText({ token: "tother", fingerprint: "-", startedAt: Date.now() });
        for (const index of store.endpoints.keys()) await store.execute(index, ["SET", name, text]);
        res.statusMessage = "Fine";
        res.set({ "x-mine": "1", "x-outer": "2", "access-control-allow-origin": "*" }).json({ mine: true });
      },
      {},
      further,
    );
    const stand = await serve(app);
    const answer = await stand.send(post(key));
    expect([answer.headers.get("x-mine"), answer.headers.get("access-control-allow-origin")]).toEqual([
      null,
      "*",
    ]);
    expect([answer.headers.get("x-outer"), answer.statusText]).toEqual(["1", "Conflict"]);
    expect(await problemIn(answer)).toEqual({ status: 409, code: "LEASE_LOST" });
  });

  test("with failOpen and without a store, the handler answers by itself", async () => {
    const down = clientOf(store);
    for (const link of down.links) link.fate = () => "refused";
    const app = appWith((req, res) => res.json({ run: req.idempotency ?? null }), {
      redlock: down.redlock,
      failOpen: true,
      onEvent: () => undefined,
    });
    const stand = await serve(app);
    expect(await (await stand.send(post())).json()).toEqual({ run: null });
  });

  test("mounted twice, it says so", async () => {
    const app = appWith((_req, res) => res.end(), { wait: 0 }, guard());
    const messages: string[] = [];
    app.use((error: Error, _req: Any, res: Any, _next: Any) => {
      messages.push(error.message);
      res.status(500).end();
    });
    const stand = await serve(app);
    expect((await stand.send(post())).status).toBe(500);
    expect(messages).toEqual([expect.stringContaining("mounted twice")]);
  });

  test("an unprotected request passes untouched", async () => {
    const app = appWith((req, res) => res.json({ run: req.idempotency ?? null }), { required: false });
    const stand = await serve(app);
    expect(await (await stand.send(post(null))).json()).toEqual({ run: null });
    const get = post(freshKey(), { method: "GET", body: null });
    expect((await stand.send(get)).headers.has("idempotent-replayed")).toBe(false);
  });
});

test("wrong options are refused at once", () => {
  expect(() => idempotentExpress({} as never)).toThrow("redlock is missing");
  expect(() => guard({ leese: 1 } as never)).toThrow("did you mean lease?");
  expect(() => guard({ provider: {} as never })).toThrow("a sender of webhooks");
  expect(() => guard({ lock: "" })).toThrow(RangeError);
});
