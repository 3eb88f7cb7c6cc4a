import { type Context, Hono } from "hono";
import { cors } from "hono/cors";
import { HTTPException } from "hono/http-exception";
import { describe, expect, test } from "vitest";
import { type IdempotencyVariables, idempotent } from "../../src/hono/index.ts";
import type { HttpRules } from "../../src/http/index.ts";
import { pendingText } from "../../src/idempotency/record.ts";
import type { Redlock } from "../../src/index.ts";
import { stripe } from "../../src/webhooks/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { allArrived, recordName, recordsOf } from "../support/stores.ts";
import { delivery, opened, post, problemIn, provider, seen } from "./stand.ts";

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
  test("its headers are on every answer, and only its own, not those of the first", async () => {
    const key = freshKey();
    let requests = 0;
    const app = new Hono();
    app.use(cors({ origin: (origin) => origin, credentials: true }));
    app.use(async (c, next) => {
      requests += 1;
      c.header("x-request", `${requests}`);
      await next();
    });
    app.post("/payments", once(), (c) => {
      c.header("set-cookie", "session=first");
      return c.json({ ok: true }, 201);
    });
    const from = (origin: string, given: string | null = key) => post(given, { headers: { origin } });
    const first = await seen(await app.fetch(from("https://a.example")));
    expect(first.headers).toMatchObject({
      "access-control-allow-origin": "https://a.example",
      "x-request": "1",
    });
    expect(first.headers["set-cookie"]).toBe("session=first");
    const again = await seen(await app.fetch(from("https://b.example")));
    expect(again).toMatchObject({ status: 201, bytes: first.bytes });
    expect(again.headers).toEqual({
      "access-control-allow-origin": "https://b.example",
      "access-control-allow-credentials": "true",
      "content-type": "application/json",
      "idempotent-replayed": "true",
      "x-request": "2",
      vary: "Origin",
    });
    const refused = await app.fetch(from("https://c.example", null));
    expect(refused.headers.get("access-control-allow-origin")).toBe("https://c.example");
    expect(refused.headers.get("x-request")).toBe("3");
    expect(await problemIn(refused)).toEqual({ status: 400, code: "KEY_MISSING" });
  });

  test.each(["refused", "replayed"])(
    "what it says of the origin is on the answer that replaces the handler's, which is not there: %s",
    async (kind) => {
      const key = freshKey();
      const app = new Hono().use(cors({ origin: ["https://a.example", "https://b.example"] }));
      app.use(async (c, next) => {
        c.header("vary", "x-tenant");
        await next();
      });
      let runs = 0;
      const headers = { origin: "https://a.example" };
      app.post("/payments", once(), async (c) => {
        runs += 1;
        if (runs === 2) return c.text("theirs");
        await allArrived(at.client.links);
        // Another run has taken over.
        const taken = pendingText({ token: "tother", startedAt: Date.now(), fingerprint: "-" });
        const record = await recordName(key, [], "http");
        if (kind === "refused") await at.store.execute(0, ["SET", record, taken]);
        else {
          await at.store.execute(0, ["DEL", record]);
          expect((await app.fetch(post(key, { headers }))).status).toBe(200);
        }
        return c.text("mine", 201, { "set-cookie": "a=1", "x-mine": "1", "x-vary": "1", "vary-x": "1" });
      });
      const response = await app.fetch(post(key, { headers }));
      expect(response.headers.get("access-control-allow-origin")).toBe("https://a.example");
      expect(response.headers.get("vary")).toContain("x-tenant");
      for (const name of ["set-cookie", "x-mine", "x-vary", "vary-x"])
        expect(response.headers.has(name)).toBe(false);
      if (kind === "refused") expect(await problemIn(response)).toEqual({ status: 409, code: "LEASE_LOST" });
      else expect(await response.text()).toBe("theirs");
    },
  );

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

  test("gets the status of the answer", async () => {
    const statuses: unknown[] = [];
    const app = new Hono<{ Variables: IdempotencyVariables }>();
    app.use(async (c, next) => {
      await next();
      statuses.push(c.var.idempotency?.status);
    });
    app.post("/payments", once(), (c) => {
      expect(c.var.idempotency).toMatchObject({
        key: expect.any(String),
        token: expect.stringMatching(/^t/),
      });
      expect(c.var.idempotency?.signal.aborted).toBe(false);
      expect(c.var.idempotency?.remaining()).toBeGreaterThan(0);
      return c.text("x", Number(c.req.header("x-status") ?? 200) as 200);
    });
    const key = freshKey();
    await app.fetch(post(key));
    await app.fetch(post(key));
    await app.fetch(post(freshKey(), { headers: { "x-status": "500" } }));
    expect(statuses).toEqual(["executed", undefined, "failed"]);
  });
});

test("options that differ between requests may come from the context", async () => {
  interface Bindings {
    redlock: Redlock;
    tenant?: string;
  }
  const app = new Hono<{ Bindings: Bindings }>().post(
    "/payments",
    idempotent({
      redlock: (c: Context<{ Bindings: Bindings }>) => c.env.redlock,
      // @ts-expect-error the tenant may be absent
      scope: async (c) => c.env.tenant,
      deadline: () => Date.now() + 60_000,
    }),
    (c) => c.text(c.env.tenant ?? ""),
  );
  const key = freshKey();
  for (const tenant of ["a", "b"]) {
    for (let times = 0; times < 2; times += 1) {
      expect(await (await app.fetch(post(key), { redlock: at.client.redlock, tenant })).text()).toBe(tenant);
    }
  }
  // An absent tenant must not become a key that all absent tenants share.
  app.onError((error, c) => c.text(error.message, 500));
  const response = await app.fetch(post(freshKey()), { redlock: at.client.redlock });
  expect([response.status, await response.text()]).toEqual([500, expect.stringContaining("scope")]);
  const hook = new Hono().post(
    "/hook",
    idempotent({ redlock: at.client.redlock, provider: async () => provider }),
    (c) => c.text("handled"),
  );
  expect(await (await hook.fetch(delivery(freshKey()))).text()).toBe("handled");
});

test("the platform's waitUntil is used where there is one", async () => {
  const background: Promise<unknown>[] = [];
  const platform = {
    background,
    waitUntil(this: { background: Promise<unknown>[] }, work: Promise<unknown>) {
      this.background.push(work); // called on its owner, as the platform demands
    },
    passThroughOnException: () => undefined,
    props: {},
  };
  const app = new Hono().post("/payments", once(), (c) => c.text("x"));
  await app.fetch(post(), {}, platform as never);
  expect(background.length).toBeGreaterThan(0);
  await Promise.all(background);
  const own: Promise<unknown>[] = [];
  const waitUntil = (work: Promise<unknown>) => own.push(work);
  const other = new Hono().post("/payments", idempotent({ redlock: at.client.redlock, waitUntil }), (c) =>
    c.text("x"),
  );
  background.length = 0;
  await other.fetch(post(), {}, platform as never);
  expect([own.length > 0, background.length]).toEqual([true, 0]);
  expect((await app.fetch(post(), {}, {} as never)).status).toBe(200);
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

  test("twice on a route: an error says so, and the key is free", async () => {
    const key = freshKey();
    const app = appWith()
      .use(once())
      .post("/payments", once(), (c) => c.text("paid"));
    expect((await app.fetch(post(key))).status).toBe(500);
    expect(String(caught)).toMatch(/mounted twice/);
    expect(await free(key)).toBe(true);
    // With scopes of their own, they are two.
    const both = new Hono()
      .use(once())
      .post("/payments", idempotent({ redlock: at.client.redlock, scope: "b" }), (c) => c.text("paid"));
    expect(await (await both.fetch(post(key))).text()).toBe("paid");
  });

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
