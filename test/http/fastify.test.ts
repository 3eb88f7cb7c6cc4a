import Fastify, { type FastifyInstance } from "fastify";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { idempotentFastify } from "../../src/node/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { forgetUndefinedModules } from "../support/require-cache.ts";
import { type Client, clientOf, type OpenStore } from "../support/stores.ts";
import { stores } from "./stand.ts";

// What only Fastify has: hooks and contexts. frameworks.test.ts and adapters.test.ts have the rest.

let store: OpenStore;
let client: Client;
let app: FastifyInstance;
beforeAll(forgetUndefinedModules);
beforeAll(async () => {
  store = await stores[0]!.open();
  client = clientOf(store);
});
afterEach(() => app?.close());
afterAll(() => store.close());

const post = (url: string, key?: string) =>
  app.inject({ method: "POST", url, headers: key === undefined ? {} : { "idempotency-key": key } });

test("headers of hooks further out are on every answer, and only their own", async () => {
  app = Fastify();
  let requests = 0;
  app.addHook("onRequest", async (_request, reply) => {
    requests += 1;
    reply.header("x-request", `${requests}`);
  });
  await app.register(idempotentFastify({ redlock: client.redlock }));
  app.post("/", async (_, reply) => reply.header("x-of", "handler").send("ok"));
  const key = freshKey();
  const answers = [await post("/", key), await post("/", key), await post("/")];
  expect(answers.map(({ headers }) => headers["x-request"])).toEqual(["1", "2", "3"]);
  expect(answers.map(({ headers }) => headers["x-of"])).toEqual(["handler", "handler", undefined]);
});

test("the plugin is for the routes of its context only, and may be registered in several", async () => {
  app = Fastify();
  app.post("/free", async () => "free");
  for (const name of ["a", "b"]) {
    app.register(async (guarded) => {
      await guarded.register(
        idempotentFastify({ redlock: client.redlock, scope: ({ raw }) => [name, raw.url!] }),
      );
      guarded.post(`/${name}`, async () => name);
    });
  }
  expect((await post("/free")).body).toBe("free");
  const key = freshKey();
  for (const name of ["a", "b"]) {
    const { statusCode, body } = await post(`/${name}`, key);
    expect([statusCode, body]).toEqual([200, name]);
  }
  expect((await post("/a")).statusCode).toBe(400);
});
