import { type ExecutionContext, Hono } from "hono";
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

type Kept = Promise<unknown>[];

/** Serves one request, and returns the options that the lock was acquired with. */
async function optionsOf(
  route: Partial<LockRouteOptions> = {},
  defaults: LockOptions = {},
  platform?: Pick<ExecutionContext, "waitUntil">,
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
  const context = platform as ExecutionContext | undefined;
  expect(await (await app.fetch(request, {}, context)).text()).toBe("done");
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

describe("waitUntil", () => {
  const names = ["route", "platform", "client"] as const;

  test.each([
    [["route", "platform", "client"], "route"],
    [["platform", "client"], "platform"],
    [["client"], "client"],
    [[], undefined],
  ] as const)("of %j is that of the %s", async (present, expected) => {
    const kept = { route: [] as Kept, platform: [] as Kept, client: [] as Kept };
    const keeping = (name: (typeof names)[number]) =>
      (present as readonly string[]).includes(name)
        ? (work: Promise<unknown>) => void kept[name].push(work)
        : undefined;
    const platform = keeping("platform");
    await optionsOf(
      { waitUntil: keeping("route") },
      { waitUntil: keeping("client") },
      platform && { waitUntil: platform },
    );
    for (const name of names) expect(kept[name].length > 0).toBe(name === expected);
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
    const options = await optionsOf({ ttl: 12_345, wait: 7, fencing: true, status: 409 });
    expect(options).toMatchObject({ ttl: 12_345, wait: 7, fencing: true });
    for (const name of ["redlock", "resource", "status"]) expect(options).not.toHaveProperty(name);
  });
});

describe("the answer where there is no lock", () => {
  /** A route whose client fails to acquire in this way. */
  async function answer(
    fail: (request: Request) => Error,
    options: Partial<LockRouteOptions> = {},
    init: RequestInit = {},
  ) {
    const redlock = new Redlock({ endpoints: [memoryEndpoint()] });
    const request = post(null, init);
    redlock.acquire = (() => Promise.reject(fail(request))) as typeof redlock.acquire;
    const app = new Hono();
    app.onError((error, c) => c.text(error.message, 500));
    app.post("/payments", lock({ redlock, resource: "r", ...options }), () => expect.unreachable("no lock"));
    return app.fetch(request);
  }
  const held = () => new LockHeldError(["r"], 1, 2_500);

  test.each([
    [{}, 423],
    [{ status: 409 as const }, 409],
  ])("is that of the route where it is held: %j", async (options, status) => {
    const response = await answer(held, options);
    expect([response.status, response.headers.get("retry-after")]).toEqual([status, "3"]);
    expect(await response.json()).toMatchObject({ status, code: "LOCK_HELD" });
  });

  test("is 503 where no quorum answered, whatever that of the route", async () => {
    const response = await answer(() => new QuorumError("acquire", ["r"], []), { status: 409 });
    expect(await response.json()).toMatchObject({ status: 503, code: "NO_QUORUM" });
  });

  test("is 499 where the client has gone, by its own reason", async () => {
    const reason = new Error("its own");
    const init = { signal: AbortSignal.abort(reason) };
    expect(await (await answer(() => reason, {}, init)).json()).toMatchObject({ code: "ABORTED" });
    // Another error of the same moment is no abort.
    expect(await (await answer(held, {}, init)).json()).toMatchObject({ code: "LOCK_HELD" });
    expect(await (await answer(() => new Error("another"), {}, init)).text()).toBe("another");
  });

  test("is the lock's where the platform's requests have no signal", async () => {
    using _ = vi.spyOn(Request.prototype, "signal", "get").mockReturnValue(undefined as never);
    expect((await answer(held)).status).toBe(423);
  });

  test("is not its own where acquiring fails in another way", async () => {
    expect(await (await answer(() => new TypeError("wrong"))).text()).toBe("wrong");
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
    ["another status", { status: 503 }, RangeError],
    ["an unknown option", { autoextend: true }, TypeError],
    ["a wrong option of a lock", { ttl: 1 }, RangeError],
    ["a waitUntil that is none", { waitUntil: {} }, TypeError],
  ])("%s", (_what, options, error) => {
    expect(wrong(options)).toThrow(error);
  });

  test.each([[{ resource: ["a", "b"] }], [{ resource: () => "r" }], [{ status: 423 }], [{ status: 409 }]])(
    "but not %j",
    (options) => {
      expect(wrong(options)).not.toThrow();
    },
  );
});
