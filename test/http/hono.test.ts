import { type Context, type ErrorHandler, type Handler, Hono, type MiddlewareHandler } from "hono";
import { HTTPException } from "hono/http-exception";
import { describe, expect, test, vi } from "vitest";
import { idempotent, lock } from "../../src/hono/index.ts";
import type { HttpRules } from "../../src/http/index.ts";
import { stripe } from "../../src/webhooks/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { clientOf, recordsOf } from "../support/stores.ts";
import { delivery, opened, post, provider } from "./stand.ts";

const at = opened();

const once = (options: HttpRules = {}) => idempotent({ redlock: at.client.redlock, ...options });
const free = async (key: string) =>
  (await recordsOf(at.store, key, [], "http", "/payments")).every((record) => record === null);

describe("a handler that fails has its answer passed through, and the key is free", () => {
  const boom = () => {
    throw new Error("boom");
  };
  const guarded = (handler: Handler) => new Hono().post("/payments", once(), handler);
  const sorry: ErrorHandler = (_, c) => c.text("sorry");

  test.each<[what: string, app: typeof guarded, handler: Handler, status: number]>([
    ["an Error", guarded, boom, 500],
    [
      "an HTTPException",
      guarded,
      () => {
        throw new HTTPException(404, { message: "no such thing" });
      },
      404,
    ],
    ["an Error, to which onError answers 200", (handler) => guarded(handler).onError(sorry), boom, 200],
    ["no response", guarded, (() => undefined) as never, 500],
  ])("%s", async (_what, app, handler, status) => {
    using _ = vi.spyOn(console, "error").mockReturnValue();
    const key = freshKey();
    const answers: Handler[] = [handler, (c) => c.text("second time")];
    const { fetch } = app((c, next) => answers.shift()!(c, next));
    expect((await fetch(post(key))).status).toBe(status);
    expect(await free(key)).toBe(true);
    expect(await (await fetch(post(key))).text()).toBe("second time");
  });

  test("but a thrown value that is no Error, which Hono throws, too", async () => {
    const key = freshKey();
    const app = guarded(() => {
      throw "text";
    });
    await expect(app.fetch(post(key))).rejects.toBe("text");
    expect(await free(key)).toBe(true);
  });
});

describe("middleware further out", () => {
  test.each<[string, (c: Context) => Promise<unknown>]>([
    ["text()", (c) => c.req.text()],
    ["json()", (c) => c.req.json()],
    ["arrayBuffer()", (c) => c.req.arrayBuffer()],
  ])("may have read the body by %s", async (_how, read) => {
    const body = '{ "spaced" : "oüt" }';
    const { redlock } = at.client;
    const app = new Hono();
    app.use(async (c, next) => {
      await read(c);
      await next();
    });
    app.post("/hook", idempotent({ redlock, provider }), async (c) =>
      c.text((await c.req.text()) + (await c.req.raw.text())),
    );
    for (const cap of [20, 21])
      app.post(`/${cap}`, idempotent({ redlock, maxRequestBody: cap }), (c) => c.text("small"));
    expect(await (await app.fetch(delivery(freshKey(), { body }))).text()).toBe(body + body);
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
    ["as text a byte order mark", "\ufeff{}", (c) => c.req.text()],
    ["as JSON a byte order mark", "\ufeff{}", (c) => c.req.json()],
  ])("must not have read %s, whose bytes cannot be restored", async (_how, body, read) => {
    const app = new Hono();
    app.use(async (c, next) => {
      await read(c);
      await next();
    });
    app.post("/payments", once(), (c) => c.text("x"));
    app.onError((error, c) => c.text(error.message, 500));
    const headers = typeof body === "string" ? { "content-length": String(Buffer.byteLength(body)) } : {};
    const response = await app.fetch(post(undefined, { body, headers }));
    expect([response.status, await response.text()]).toEqual([500, expect.stringContaining("further out")]);
  });
});

type Guard = (options: Parameters<typeof idempotent>[0]) => MiddlewareHandler;

describe.each<[string, Guard]>([
  ["idempotent()", (options) => idempotent(options)],
  ["lock()", (options) => lock({ ...options, resource: freshKey() } as never)],
])("%s", (_name, guard) => {
  test.each([
    [["route", "platform", "client"], "route"],
    [["platform", "client"], "platform"],
    [["client"], "client"],
    [[], undefined],
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
    const app = new Hono().post("/payments", guard({ redlock, waitUntil: keeping("route") }), (c) =>
      c.text("x"),
    );
    await app.fetch(post(), {}, (platform.keep ? platform : {}) as never);
    const used = Object.keys(kept).filter((name) => kept[name]!.length > 0);
    expect(used).toEqual(expected ? [expected] : []);
    await Promise.all(Object.values(kept).flat());
  });
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
