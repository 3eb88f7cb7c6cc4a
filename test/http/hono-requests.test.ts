import { type ExecutionContext, Hono } from "hono";
import { afterAll, expect, test } from "vitest";
import { idempotent } from "../../src/hono/index.ts";
import { clientOf } from "../support/stores.ts";
import { post, stores } from "./stand.ts";

// What idempotent() passes on of a request and its platform.

const store = await stores[0]!.open();
const { redlock } = clientOf(store);
const once = () => idempotent({ redlock });

test("a platform's context without waitUntil is none", async () => {
  const app = new Hono().post("/payments", once(), (c) => c.text("x"));
  expect((await app.fetch(post(), {}, {} as ExecutionContext)).status).toBe(200);
});

test("a request without a body and a key reaches the handler as it came", async () => {
  const app = new Hono().get("/payments", once(), (c) => c.text(`${c.var.idempotency}`));
  const response = await app.fetch(post(null, { method: "GET", body: null }));
  expect([response.status, await response.text()]).toEqual([200, "undefined"]);
});

test("a body that was read further out may have as many bytes as allowed", async () => {
  for (const [maxRequestBody, status] of [
    [4, 200],
    [3, 413],
  ] as const) {
    const app = new Hono().use(async (c, next) => {
      await c.req.text();
      await next();
    });
    app.post("/payments", idempotent({ redlock, maxRequestBody }), (c) => c.text("x"));
    expect((await app.fetch(post(undefined, { body: "body" }))).status).toBe(status);
  }
});

afterAll(() => store.close());
