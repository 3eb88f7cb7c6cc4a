import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type IdempotentRequest, idempotentFastify, type NodeOptions } from "../../src/node/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { gate } from "../support/link.ts";
import { forgetUndefinedModules } from "../support/require-cache.ts";
import { type Client, clientOf, type OpenStore, recordsOf } from "../support/stores.ts";
import { type NodeStand, clientOf as senderTo } from "./node-stand.ts";
import { delivery, post, problemIn, provider, stores } from "./stand.ts";

declare module "fastify" {
  interface FastifyRequest extends IdempotentRequest {}
}

let store: OpenStore;
let client: Client;
const apps: FastifyInstance[] = [];
beforeAll(forgetUndefinedModules);
beforeAll(async () => {
  store = await stores[0]!.open();
  client = clientOf(store);
});
afterEach(() => Promise.all(apps.splice(0).map((app) => app.close())));
afterAll(() => store.close());

const free = async (key: string) =>
  (await recordsOf(store, key, [], "http")).every((record) => record === null);

type Route = (request: FastifyRequest, reply: FastifyReply) => unknown;

/** An app with one guarded route. */
async function serve(
  route: Route,
  options: Partial<NodeOptions<FastifyRequest>> = {},
  prepare: (app: FastifyInstance) => void = () => undefined,
): Promise<Pick<NodeStand, "send" | "connect">> {
  const app = Fastify({ forceCloseConnections: true });
  apps.push(app);
  prepare(app);
  app.register(async (guarded) => {
    await guarded.register(idempotentFastify({ redlock: client.redlock, ...options }));
    guarded.all("*", route as never);
  });
  const url = await app.listen({ host: "127.0.0.1", port: 0 });
  return senderTo(Number(new URL(url).port));
}

test("five deliveries act once", async () => {
  let runs = 0;
  const started = gate();
  const finish = gate();
  const stand = await serve(
    async (request) => {
      runs += 1;
      started.open();
      await finish.passed;
      return { id: request.webhook?.id, key: request.idempotency?.key, body: request.body };
    },
    { provider, wait: 60_000 },
    (app) => app.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body)),
  );
  const id = freshKey();
  const sent = [1, 2, 3, 4, 5].map(() => stand.send(delivery(id)));
  await started.passed;
  finish.open();
  const answers = await Promise.all(sent);
  const bodies = await Promise.all(answers.map((answer) => answer.json()));
  expect(bodies).toEqual(Array(5).fill({ id, key: id, body: '{"zen":"ok"}' }));
  expect(runs).toBe(1);
});

test("a duplicate of a request under way, another request, and one without a key are refused", async () => {
  const started = gate();
  const finish = gate();
  const stand = await serve(async () => {
    started.open();
    await finish.passed;
    return "done";
  });
  const key = freshKey();
  const first = stand.send(post(key));
  await started.passed;
  expect(await problemIn(await stand.send(post(key)))).toEqual({ status: 409, code: "IN_PROGRESS" });
  finish.open();
  expect(await (await first).text()).toBe("done");
  expect((await stand.send(post(key, { body: "{}" }))).status).toBe(422);
  expect(await problemIn(await stand.send(post(null)))).toEqual({ status: 400, code: "KEY_MISSING" });
});

test("an error of the option store is answered with 500, and the key is free", async () => {
  const stand = await serve(async () => "ok", {
    store() {
      throw new Error("boom");
    },
  });
  const key = freshKey();
  expect((await stand.send(post(key))).status).toBe(500);
  expect(await free(key)).toBe(true);
});

test("headers of hooks further out are on every answer, and only their own", async () => {
  let requests = 0;
  const stand = await serve(
    async (_, reply) => reply.header("x-of", "handler").send("ok"),
    {},
    (app) => {
      app.addHook("onRequest", async (_request, reply) => {
        requests += 1;
        reply.header("x-request", `${requests}`);
      });
    },
  );
  const key = freshKey();
  const answers = [await stand.send(post(key)), await stand.send(post(key)), await stand.send(post(null))];
  expect(answers.map(({ headers }) => headers.get("x-request"))).toEqual(["1", "2", "3"]);
  expect(answers.map(({ headers }) => headers.get("x-of"))).toEqual(["handler", "handler", null]);
});

test("a body that is too large is 413", async () => {
  const stand = await serve(async () => "ok", { maxRequestBody: 10 });
  const large = post(freshKey(), { body: "x".repeat(11) });
  expect(await problemIn(await stand.send(large))).toEqual({ status: 413, code: "BODY_TOO_LARGE" });
});

describe("the plugin", () => {
  test("is for the routes of its context only, and may be registered in several", async () => {
    const app = Fastify();
    apps.push(app);
    app.get("/free", async () => "free");
    app.post("/free", async () => "free");
    for (const name of ["a", "b"]) {
      app.register(async (guarded) => {
        await guarded.register(
          idempotentFastify<FastifyRequest>({ redlock: client.redlock, scope: ({ url }) => [name, url] }),
        );
        guarded.post(`/${name}`, async () => name);
      });
    }
    expect((await app.inject({ method: "POST", url: "/free" })).body).toBe("free");
    const key = freshKey();
    for (const name of ["a", "b"]) {
      const answer = await app.inject({
        method: "POST",
        url: `/${name}`,
        headers: { "idempotency-key": key },
      });
      expect([answer.statusCode, answer.body]).toEqual([200, name]);
    }
    expect((await app.inject({ method: "POST", url: "/a" })).statusCode).toBe(400);
  });

  test("refuses wrong options at once", () => {
    expect(() => idempotentFastify({} as never)).toThrow("redlock is missing");
    expect(() => idempotentFastify({ redlock: client.redlock, provider: {} as never })).toThrow("webhooks");
  });
});
