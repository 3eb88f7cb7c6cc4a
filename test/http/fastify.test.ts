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

test("with trustProxy the address is the one that the client has called", async () => {
  const addresses: string[] = [];
  const fingerprint = ({ url }: Request) => void addresses.push(url);
  for (const trustProxy of [true, false]) {
    await app?.close();
    app = Fastify({ trustProxy });
    await app.register(idempotentFastify({ redlock: at.client.redlock, fingerprint }));
    app.post("/", async () => "ok");
    const forwarded = { "x-forwarded-proto": "https", "x-forwarded-host": "shop.example" };
    const headers = { host: "inner", "idempotency-key": freshKey(), ...forwarded };
    await app.inject({ method: "POST", url: "/", headers });
  }
  expect(addresses).toEqual(["https://shop.example/", "http://inner/"]);
});
