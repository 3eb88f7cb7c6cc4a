import { type Context, Hono } from "hono";
import { describe, expect, test } from "vitest";
import { idempotent, type LockRouteOptions, lock } from "../../src/hono/index.ts";
import type { Lock } from "../../src/index.ts";
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

  test("with failOpen the route runs without a lock in an outage, and reports it", async () => {
    const lines: unknown[] = [];
    const app = serving((c) => c.json(c.get("lock") === undefined), {
      failOpen: true,
      onEvent: ({ type }) => lines.push(type),
    });
    const resource = freshKey();
    expect(await (await app.fetch(on(resource))).json()).toBe(false);
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
