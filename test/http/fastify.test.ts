import Fastify, { type FastifyInstance } from "fastify";
import { afterEach, beforeAll, expect, test } from "vitest";
import { idempotentFastify } from "../../src/node/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { forgetUndefinedModules } from "../support/require-cache.ts";
import { opened } from "./stand.ts";

// What only Fastify has: hooks and contexts. frameworks.test.ts and adapters.test.ts have the rest.

const at = opened();
let app: FastifyInstance;
beforeAll(forgetUndefinedModules);
afterEach(() => app?.close());

const post = (url: string, key?: string) =>
  app.inject({ method: "POST", url, headers: key === undefined ? {} : { "idempotency-key": key } });

test("headers of hooks further out are on every answer, and only their own", async () => {
  app = Fastify();
  let requests = 0;
  app.addHook("onRequest", async (_request, reply) => {
    requests += 1;
    reply.header("x-request", `${requests}`);
  });
  await app.register(idempotentFastify({ redlock: at.client.redlock }));
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
        idempotentFastify({ redlock: at.client.redlock, scope: ({ raw }) => [name, raw.url!] }),
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
