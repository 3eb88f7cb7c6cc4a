import { type Context, Hono } from "hono";
import { HTTPException } from "hono/http-exception";
import { describe, expect, test } from "vitest";
import { idempotent } from "../../src/hono/index.ts";
import type { HttpRules } from "../../src/http/index.ts";
import { stripe } from "../../src/webhooks/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { clientOf, recordsOf } from "../support/stores.ts";
import { delivery, opened, post, provider } from "./stand.ts";

const at = opened();

const once = (options: HttpRules = {}) => idempotent({ redlock: at.client.redlock, ...options });
const free = async (key: string) =>
  (await recordsOf(at.store, key, [], "http")).every((record) => record === null);

describe("a handler that throws", () => {
  test.each([
    ["an Error", new Error("boom"), 500],
    ["an HTTPException", new HTTPException(404, { message: "no such thing" }), 404],
  ])("%s: Hono's answer is passed through, and the key is free", async (_what, error, status) => {
    const key = freshKey();
    let runs = 0;
    const app = new Hono().post("/payments", once(), (c) => {
      runs += 1;
      if (runs === 1) throw error;
      return c.text("second time");
    });
    expect((await app.fetch(post(key))).status).toBe(status);
    expect(await free(key)).toBe(true);
    expect(await (await app.fetch(post(key))).text()).toBe("second time");
  });

  test("a 200 of onError is not stored", async () => {
    const key = freshKey();
    let runs = 0;
    const app = new Hono().post("/payments", once(), () => {
      runs += 1;
      throw new Error("boom");
    });
    app.onError((_, c) => c.text("sorry"));
    for (let times = 1; times <= 2; times += 1) {
      const response = await app.fetch(post(key));
      expect([response.status, await response.text(), runs]).toEqual([200, "sorry", times]);
      expect(response.headers.has("idempotent-replayed")).toBe(false);
    }
    expect(await free(key)).toBe(true);
  });

  test("onError of a mounted app counts as well", async () => {
    const key = freshKey();
    const inner = new Hono().post("/", () => {
      throw new Error("boom");
    });
    inner.onError((_, c) => c.text("sorry"));
    const app = new Hono().use(once()).route("/payments", inner);
    expect(await (await app.fetch(post(key))).text()).toBe("sorry");
    expect(await free(key)).toBe(true);
  });

  test("a thrown value that is no Error is passed on, and the key is free", async () => {
    const key = freshKey();
    const app = new Hono().post("/payments", once(), () => {
      throw "text";
    });
    await expect(app.fetch(post(key))).rejects.toBe("text");
    expect(await free(key)).toBe(true);
  });

  test("one that returns no response has no result", async () => {
    const key = freshKey();
    const app = new Hono().post("/payments", once(), (() => undefined) as never);
    app.onError((error, c) => c.text(error.message, 500));
    expect((await app.fetch(post(key))).status).toBe(500);
    expect(await free(key)).toBe(true);
  });
});

describe("middleware further out", () => {
  test.each<[string, (c: Context) => Promise<unknown>]>([
    ["text()", (c) => c.req.text()],
    ["json()", (c) => c.req.json()],
    ["arrayBuffer()", (c) => c.req.arrayBuffer()],
    ["blob()", (c) => c.req.blob()],
  ])("may have read the body by %s", async (_how, read) => {
    const body = '{ "spaced" : "oüt" }';
    const app = new Hono();
    app.use(async (c, next) => {
      await read(c);
      await next();
    });
    app.post("/hook", idempotent({ redlock: at.client.redlock, provider }), async (c) =>
      c.text((await c.req.text()) + (await c.req.raw.text())),
    );
    for (const cap of [20, 21])
      app.post(`/${cap}`, idempotent({ redlock: at.client.redlock, maxRequestBody: cap }), (c) =>
        c.text("small"),
      );
    const id = freshKey();
    for (let times = 0; times < 2; times += 1) {
      expect(await (await app.fetch(delivery(id, { body }))).text()).toBe(body + body);
    }
    expect((await app.fetch(post(freshKey(), { path: "/20", body }))).status).toBe(413);
    expect((await app.fetch(post(freshKey(), { path: "/21", body }))).status).toBe(200);
  });

  const form = new FormData();
  form.set("a", "1");
  test.each<[string, BodyInit, (c: Context) => Promise<unknown>]>([
    // As Hono's validators fill the cache. The text is made from the form data, with boundaries of its own.
    [
      "as form data",
      form,
      async (c) => {
        await c.req.formData();
        Object.assign(c.req.bodyCache, { text: c.req.text() });
      },
    ],
    // Different bodies would be one.
    ["as text what is no UTF-8", new Uint8Array([0xff, 0xfe]), (c) => c.req.text()],
  ])("must not have read %s, whose bytes cannot be restored", async (_how, body, read) => {
    const app = new Hono();
    app.use(async (c, next) => {
      await read(c);
      await next();
    });
    app.post("/payments", once(), (c) => c.text("x"));
    app.onError((error, c) => c.text(error.message, 500));
    const response = await app.fetch(post(undefined, { body }));
    expect([response.status, await response.text()]).toEqual([500, expect.stringContaining("further out")]);
  });
});

test.each([
  [["route", "platform", "client"], "route"],
  [["platform", "client"], "platform"],
  [["client"], "client"],
] as const)("waitUntil of %j is that of the %s", async (present: readonly string[], expected) => {
  const kept: Record<string, Promise<unknown>[]> = { route: [], platform: [], client: [] };
  const keeping = (name: string) =>
    present.includes(name) ? (work: Promise<unknown>) => void kept[name]!.push(work) : undefined;
  const platform = {
    keep: keeping("platform"),
    waitUntil(work: Promise<unknown>) {
      this.keep!(work); // called on its owner, as the platform demands
    },
  };
  const { redlock } = clientOf(at.store, {}, { waitUntil: keeping("client") });
  const guard = idempotent({ redlock, waitUntil: keeping("route") });
  const app = new Hono().post("/payments", guard, (c) => c.text("x"));
  await app.fetch(post(), {}, (platform.keep ? platform : {}) as never);
  const used = Object.keys(kept).filter((name) => kept[name]!.length > 0);
  expect(used).toEqual([expected]);
  await Promise.all(kept[expected]!);
});

describe("idempotent() in the wrong place", () => {
  const caught: unknown[] = [];
  const appWith = () => {
    caught.length = 0;
    return new Hono().onError((error, c) => {
      caught.push(error);
      return c.text("wrong", 500);
    });
  };

  test("after the handler: an error says so", async () => {
    const app = appWith().post(
      "/payments",
      (c, next) => {
        c.res = c.text("paid");
        return next();
      },
      once(),
    );
    expect((await app.fetch(post(freshKey()))).status).toBe(500);
    expect(String(caught)).toMatch(/mount idempotent\(\) before/);
  });

  test("a provider that is not called is named", async () => {
    const app = appWith().post(
      "/payments",
      idempotent({ redlock: at.client.redlock, provider: stripe as never }),
      (c) => c.text("paid"),
    );
    expect((await app.fetch(post(freshKey()))).status).toBe(500);
    expect(String(caught)).toMatch(/^TypeError: .*provider called, as in .*stripe\(\{ secret/);
  });

  test("a provider whose secret is not set is named, with what is wrong with it", async () => {
    const fromEnv = (c: Context) => stripe({ secret: c.env.STRIPE_WEBHOOK_SECRET });
    const app = appWith().post(
      "/payments",
      idempotent({ redlock: at.client.redlock, provider: fromEnv }),
      (c) => c.text("paid"),
    );
    expect((await app.request(post(freshKey()), undefined, {})).status).toBe(500);
    expect(String(caught)).toMatch(/^TypeError: .*provider has failed: secret is missing or empty/);
  });
});
