import { Hono } from "hono";
import { describe, expect, test, vi } from "vitest";
import { memoryEndpoint } from "../../local/src/memory/index.ts";
import { type LockRouteOptions, lock } from "../../src/hono/index.ts";
import {
  type AcquireOptions,
  LockHeldError,
  type LockOptions,
  QuorumError,
  Redlock,
} from "../../src/index.ts";
import { post } from "./stand.ts";

// What lock() passes to `acquire`, without a wait.

/** Serves one request, and returns the options that the lock was acquired with. */
async function optionsOf(
  route: Partial<LockRouteOptions> = {},
  defaults: LockOptions = {},
): Promise<AcquireOptions & { readonly request: Request }> {
  const redlock = new Redlock({ endpoints: [memoryEndpoint()], ...defaults });
  const acquire = redlock.acquire.bind(redlock);
  let given: AcquireOptions = {};
  redlock.acquire = ((resource: string, options: AcquireOptions) => {
    given = options;
    return acquire(resource, options);
  }) as typeof redlock.acquire;
  const app = new Hono().post("/payments", lock({ redlock, resource: "r", ...route }), (c) => c.text("done"));
  const request = post();
  expect(await (await app.fetch(request)).text()).toBe("done");
  return { ...given, request };
}

describe("autoExtend", () => {
  test.each<[expected: boolean, route: boolean | undefined, defaults: boolean | undefined]>([
    [true, undefined, undefined],
    [false, undefined, false],
    [true, true, false],
    [false, false, true],
  ])("is %s where the route says %s and the client %s", async (expected, route, defaults) => {
    const { autoExtend } = await optionsOf({ autoExtend: route }, { autoExtend: defaults });
    expect(autoExtend).toBe(expected);
  });
});

describe("the call", () => {
  test("has the request's signal", async () => {
    const { signal, request } = await optionsOf();
    expect(signal).toBe(request.signal);
  });

  test("has the deadline of the request, where the route has one", async () => {
    const deadline = Date.now() + 60_000;
    expect((await optionsOf({ deadline })).deadline).toBe(deadline);
    expect((await optionsOf({ deadline: async () => deadline })).deadline).toBe(deadline);
    expect((await optionsOf()).deadline).toBe(undefined);
  });

  test("has the options of the route, and none that are not options of a lock", async () => {
    const options = await optionsOf({ ttl: 12_345, wait: 7, fencing: true });
    expect(options).toMatchObject({ ttl: 12_345, wait: 7, fencing: true });
    for (const name of ["redlock", "resource"]) expect(options).not.toHaveProperty(name);
  });
});

describe("the answer where there is no lock", () => {
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

describe("lock() refuses at once", () => {
  const redlock = new Redlock({ endpoints: [memoryEndpoint()] });
  const wrong = (options: object) => () => lock({ redlock, resource: "r", ...options });

  test.each([
    ["no client", { redlock: undefined }, TypeError],
    ["what is not a client", { redlock: {} }, TypeError],
    ["no resource", { resource: undefined }, TypeError],
    ["a resource that is a number", { resource: 7 }, TypeError],
    ["an unknown option", { autoextend: true }, TypeError],
    ["a wrong option of a lock", { ttl: 1 }, RangeError],
    ["a waitUntil that is none", { waitUntil: {} }, TypeError],
  ])("%s", (_what, options, error) => {
    expect(wrong(options)).toThrow(error);
  });

  test.each([[{ resource: ["a", "b"] }], [{ resource: () => "r" }]])("but not %j", (options) => {
    expect(wrong(options)).not.toThrow();
  });
});
