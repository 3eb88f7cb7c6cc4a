import { type Context, Hono } from "hono";
import { describe, expect, test, vi } from "vitest";
import { memoryEndpoint } from "../../local/src/memory/index.ts";
import { idempotent, type LockRouteOptions, lock } from "../../src/hono/index.ts";
import {
  type AcquireOptions,
  type Lock,
  LockHeldError,
  type LockOptions,
  QuorumError,
  Redlock,
} from "../../src/index.ts";
import { inspect } from "../../src/inspect/index.ts";
import { freshKey } from "../support/fresh-key.ts";
import { outcomeOf } from "../support/outcomes.ts";
import { type Client, clientOf, recordsOf } from "../support/stores.ts";
import { opened, post, problemIn, stores } from "./stand.ts";

describe.each(stores)("lock(): $title", ({ open, count }) => {
  const at = opened({ open });
  let client: Client;

  /** A route that locks what `x-resource` names. */
  function serving(
    handler: (c: Context) => Response | Promise<Response>,
    options: Partial<LockRouteOptions> = {},
  ) {
    client = clientOf(at.store);
    const resource = (c: Context) => c.req.header("x-resource") ?? "";
    const app = new Hono();
    app.onError((error, c) => c.text(error.message, 500));
    return app.post("/payments", lock({ redlock: client.redlock, resource, wait: 0, ...options }), (c) =>
      handler(c),
    );
  }
  const on = (resource: string, init: RequestInit = {}) =>
    post(null, { ...init, headers: { "x-resource": resource } });
  const isHeld = async (resource: string) => (await inspect(client.redlock, resource)).held;

  test("holds the lock while the route runs, and releases it before the answer", async () => {
    const resource = freshKey();
    let held: Lock | undefined;
    const app = serving(async (c) => {
      held = c.get("lock") as Lock;
      expect(held.resources).toEqual([resource]);
      expect(held.remaining()).toBeGreaterThan(0);
      expect(await isHeld(resource)).toBe(true);
      return c.text("done");
    });
    expect(await (await app.fetch(on(resource))).text()).toBe("done");
    expect(await isHeld(resource)).toBe(false);
    expect(held!.signal.aborted).toBe(false);
  });

  test("does not tell strangers what the holder says of itself", async () => {
    const resource = freshKey();
    const app = serving((c) => c.text("done"), { fencing: true });
    const held = await client.redlock.acquire(resource, { note: "for-operators" });
    const refused = await app.fetch(on(resource));
    expect(refused.status).toBe(423);
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(`${JSON.stringify([...refused.headers])}${await refused.text()}`).not.toContain("for-operators");
    await held.release();
  });

  test("a handler that throws releases it too", async () => {
    const resource = freshKey();
    const app = serving(() => Promise.reject(new Error("boom")));
    expect((await app.fetch(on(resource))).status).toBe(500);
    expect(await isHeld(resource)).toBe(false);
    const odd = serving(() => Promise.reject("no Error"));
    expect((await outcomeOf(Promise.resolve(odd.fetch(on(resource))))).error).toBe("no Error");
    expect(await isHeld(resource)).toBe(false);
  });

  test("with failOpen the route runs without a lock in an outage only, and reports it", async () => {
    const lines: unknown[] = [];
    const app = serving((c) => c.json(c.get("lock") === undefined), {
      failOpen: true,
      onEvent: ({ type }) => lines.push(type),
    });
    const resource = freshKey();
    expect(await (await app.fetch(on(resource))).json()).toBe(false);
    const other = await client.redlock.acquire(resource);
    expect((await app.fetch(on(resource))).status).toBe(423);
    await other.release();
    for (const link of client.links) link.fate = () => "refused";
    expect(await (await app.fetch(on(resource))).json()).toBe(true);
    expect(lines.filter((type) => type === "unguarded")).toHaveLength(1);
  });

  test("behind idempotent(): a lock that is held is not the request's result", async () => {
    const key = freshKey();
    const resource = freshKey();
    const { redlock } = clientOf(at.store);
    const app = new Hono().post(
      "/payments",
      idempotent({ redlock }),
      lock({ redlock, resource, wait: 0 }),
      (c) => c.text(`${c.var.idempotency?.key} ${c.var.lock.resources}`),
    );
    const other = await redlock.acquire(resource);
    expect(await problemIn(await app.fetch(post(key)))).toEqual({ status: 423, code: "LOCK_HELD" });
    expect(await recordsOf(at.store, key)).toEqual(new Array(count).fill(null));
    await other.release();
    for (let times = 0; times < 2; times += 1) {
      expect(await (await app.fetch(post(key))).text()).toBe(`${key} ${resource}`);
    }
  });
});

test.each<[what: string, route: Partial<LockRouteOptions>, client: LockOptions, passed: AcquireOptions]>([
  ["extended by default", {}, {}, { autoExtend: true }],
  ["as long as the client says", {}, { autoExtend: false }, { autoExtend: false }],
  ["as the route says", { autoExtend: true }, { autoExtend: false }, { autoExtend: true }],
  ["with the route's options", { ttl: 12_345, wait: 7, fencing: true }, {}, { ttl: 12_345, wait: 7 }],
  ["until the request's deadline", { deadline: async () => 2 ** 50 }, {}, { deadline: 2 ** 50 }],
])(
  "lock() acquires a lock that is held %s, and gives up with the request",
  async (_what, route, client, passed) => {
    const redlock = new Redlock({ endpoints: [memoryEndpoint()], ...client });
    const acquire = vi.spyOn(redlock, "acquire");
    const app = new Hono().post("/payments", lock({ redlock, resource: "r", ...route }), (c) =>
      c.text("done"),
    );
    const request = post();
    expect(await (await app.fetch(request)).text()).toBe("done");
    const { signal } = request;
    expect(acquire).toHaveBeenCalledWith("r", expect.objectContaining({ signal, ...passed }));
  },
);

describe("lock() answers without a lock", () => {
  const own = new Error("its own");
  const held = new LockHeldError(["r"], 1, { retryAfter: 2_500 });
  const noQuorum = new QuorumError("acquire", ["r"], []);
  const gone: RequestInit = { signal: AbortSignal.abort(own) };

  test.each<[what: string, error: Error, init: RequestInit, answer: unknown[]]>([
    ["held", held, {}, [423, "3", "LOCK_HELD"]],
    ["no quorum", noQuorum, {}, [503, "1", "NO_QUORUM"]],
    ["the client has gone, by its own reason", own, gone, [499, null, "ABORTED"]],
    ["held, and the client has just gone", held, gone, [423, "3", "LOCK_HELD"]],
    ["an error, and the client has just gone", new Error("another"), gone, [500, null, "another"]],
    ["an error", new TypeError("wrong"), {}, [500, null, "wrong"]],
  ])("%s", async (_what, error, init, answer) => {
    const redlock = new Redlock({ endpoints: [memoryEndpoint()] });
    redlock.acquire = (() => Promise.reject(error)) as typeof redlock.acquire;
    const app = new Hono().onError((error, c) => c.json({ code: error.message }, 500));
    app.post("*", lock({ redlock, resource: "r" }), () => expect.unreachable("no lock"));
    const response = await app.fetch(post(null, init));
    const { code } = await response.json();
    expect([response.status, response.headers.get("retry-after"), code]).toEqual(answer);
    // As on platforms whose requests have none.
    using _ = vi.spyOn(Request.prototype, "signal", "get").mockReturnValue(undefined as never);
    if (init !== gone) expect((await app.fetch(post(null))).status).toBe(response.status);
  });
});

test.each([
  ["no resource", { resource: undefined }, TypeError],
  ["a resource that is a number", { resource: 7 }, TypeError],
  ["an unknown option", { autoextend: true }, TypeError],
  ["a wrong option of a lock", { ttl: 1 }, RangeError],
])("lock() refuses %s where it is made", (_what, options, error) => {
  const redlock = new Redlock({ endpoints: [memoryEndpoint()] });
  expect(() => lock({ redlock, resource: "r", ...options } as never)).toThrow(error);
});
