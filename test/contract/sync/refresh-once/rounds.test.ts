import { inspect } from "node:util";
import { describe, expect, test } from "vitest";
import { isRedlockError } from "../../../../src/index.ts";
import { RefreshedNotWrittenError, type RefreshOptions, refreshOnce } from "../../../../src/sync/index.ts";
import { type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { sentBy, newWorld as syncWorld } from "../../../support/virtual-sync.ts";

// Calls in virtual time: who refreshes, what is written with which fence, and what becomes of an answer that cannot be.

interface Tokens {
  readonly name: string;
  readonly until: number;
}

const start = 1_700_000_000_000;
/** How long a token is fresh, in ms. */
const life = 60_000;

/** A store that compares fences, a server that accepts each token once, and clients. */
function newWorld() {
  const world = syncWorld();
  const { runtime } = world;
  const pause = (ms: number) => runtime.sleep(ms);
  const store = {
    row: { name: "t0", until: start } as Tokens,
    fence: 0,
    reads: 0,
    /** Every write that was tried, and what becomes of it. */
    writes: [] as [name: string, fence: number][],
    fail: (): unknown => undefined,
  };
  const server = { valid: "t0", used: [] as string[], takes: 50 };
  const options: RefreshOptions<Tokens> = {
    read() {
      store.reads += 1;
      return store.row;
    },
    isFresh: ({ until }) => until > runtime.now(),
    async refresh({ name }) {
      server.used.push(name);
      if (name !== server.valid) throw new Error("invalid_grant");
      server.valid = `t${server.used.length}`;
      const fresh = { name: server.valid, until: runtime.now() + life };
      await pause(server.takes);
      return fresh;
    },
    async write(fresh, { fence }) {
      store.writes.push([fresh.name, fence]);
      await store.fail();
      if (fence <= store.fence) return false;
      Object.assign(store, { row: fresh, fence });
      return true;
    },
  };
  const call = ({ redlock }: VirtualClient, more: Partial<RefreshOptions<Tokens>> = {}) =>
    watch(refreshOnce(redlock, "n", { ...options, ...more }));
  return { ...world, pause, store, server, options, call };
}

const nowhere = [null, null, null];
const down = () => Promise.reject(new Error("the store is down"));

test("a value that is fresh is returned without a request", async () => {
  const { client, call, store, runtime } = newWorld();
  const own = client();
  store.row = { name: "t0", until: start + life };
  const found = call(own);
  await runtime.advance(0);
  expect(found).toEqual({ settled: true, value: store.row });
  expect([sentBy(own), store.reads]).toEqual([[0, 0, 0], 1]);
});

describe("one that is not", () => {
  test("is refreshed once for all that call, and written with the fence; the lock is free afterwards", async () => {
    const { client, call, store, server, runtime, values } = newWorld();
    const calls = Array.from({ length: 6 }, () => call(client()));
    await runtime.advance(1_000);
    expect(calls.map(({ value, error }) => error ?? value?.name)).toEqual(new Array(6).fill("t1"));
    expect(server.used).toEqual(["t0"]);
    expect(store.writes).toEqual([["t1", store.fence]]);
    expect(values("n")).toEqual(nowhere);
    await runtime.advance(life);
    const next = call(client());
    await runtime.advance(1_000);
    expect([next.value?.name, server.used]).toEqual(["t2", ["t0", "t1"]]);
    expect(store.writes[1]![1]).toBeGreaterThan(store.writes[0]![1]);
    expect(runtime.pending).toBe(0);
  });

  test("is returned to those that wait as soon as they find it, without the lock", async () => {
    const { client, call, store, runtime, values, put } = newWorld();
    put("n", [0, 1, 2]);
    const waiting = call(client());
    await runtime.advance(100);
    expect(waiting.settled).toBe(false);
    store.row = { name: "t1", until: start + life };
    await runtime.advance(20);
    expect(waiting.value?.name).toBe("t1");
    // Somebody else still holds it.
    expect(values("n")).toEqual(new Array(3).fill("somebody-else"));
    expect(runtime.pending).toBe(0);
  });

  test("is read again where its refresh fails: another holder may have refreshed it", async () => {
    const { client, call, runtime, store, server } = newWorld();
    server.valid = "elsewhere";
    const failed = call(client());
    await runtime.advance(100);
    expect(failed.error).toEqual(new Error("invalid_grant"));
    const refreshedMeanwhile = call(client(), {
      refresh: () => {
        store.row = { name: "t1", until: start + life };
        throw new Error("invalid_grant");
      },
    });
    await runtime.advance(100);
    expect(refreshedMeanwhile.value?.name).toBe("t1");
  });
});

describe("what does not become a refresh", () => {
  test("a failing read, before the lock or with it", async () => {
    const { client, call, runtime, store, values, server } = newWorld();
    const own = client();
    let reads = 0;
    const first = call(own, { read: down });
    const second = call(own, { read: () => (reads++ === 0 ? store.row : down()) });
    await runtime.advance(100);
    expect([first.error, second.error]).toEqual(new Array(2).fill(new Error("the store is down")));
    expect([values("n"), server.used]).toEqual([nowhere, []]);
  });

  test("an isFresh that returns a promise, which would always count as true", async () => {
    const { client, call, runtime, server } = newWorld();
    const wrong = call(client(), { isFresh: (async () => true) as never });
    await runtime.advance(100);
    expect([wrong.error, server.used]).toEqual([expect.any(TypeError), []]);
  });
});

test("a caller that gives up before it refreshes nothing, also while it reads under the lock", async () => {
  const { client, call, runtime, store, server, pause, values } = newWorld();
  const controller = new AbortController();
  let reads = 0;
  const read = async () => {
    if (reads++ > 0) await pause(50);
    return store.row;
  };
  const given = call(client(), { read, signal: controller.signal });
  await runtime.advance(20);
  controller.abort(new Error("closed"));
  await runtime.advance(100);
  expect([given.error, values("n"), server.used]).toEqual([new Error("closed"), nowhere, []]);
});

describe("a refresh under way", () => {
  test("goes on where its caller gives up, and is written", async () => {
    const { client, call, runtime, store, options } = newWorld();
    const controller = new AbortController();
    let inRefresh: AbortSignal | undefined;
    const given = call(client(), {
      signal: controller.signal,
      refresh(current, context) {
        inRefresh = context.signal;
        return options.refresh(current, context);
      },
    });
    await runtime.advance(20);
    controller.abort(new Error("closed"));
    await runtime.advance(1);
    expect([given.settled, inRefresh?.aborted]).toEqual([false, false]);
    await runtime.advance(100);
    expect([given.value?.name, store.row.name]).toEqual(["t1", "t1"]);
  });

  test.each([undefined, null])("that returns %s is an error, and nothing is written", async (result) => {
    const { client, call, runtime, store, values } = newWorld();
    const wrong = call(client(), { refresh: () => result as never });
    await runtime.advance(1_000);
    expect(wrong.error).toEqual(expect.any(TypeError));
    expect((wrong.error as Error).message).toMatch(/^the result of refresh .* new value/);
    expect([store.writes, values("n")]).toEqual([[], nowhere]);
  });
});

describe("an answer that cannot be written", () => {
  test("is written again, with the same fence, until the store takes it", async () => {
    const { client, call, runtime, store, server } = newWorld();
    let failures = 3;
    store.fail = () => (failures-- > 0 ? down() : undefined);
    const calls = [call(client()), call(client())];
    await runtime.advance(1_000);
    expect(calls.map(({ value }) => value?.name)).toEqual(["t1", "t1"]);
    expect(store.writes).toEqual(new Array(4).fill(["t1", store.fence]));
    expect(server.used).toEqual(["t0"]);
  });

  test("is in the error after the ttl, and in no log", async () => {
    const { client, call, runtime, store, values } = newWorld();
    store.fail = down;
    const failed = call(client({ ttl: 2_000 }));
    // 50 ms for the refresh, and pauses of 10 ms.
    await runtime.advance(2_035);
    expect(failed.settled).toBe(false);
    await runtime.advance(25);
    const error = failed.error as RefreshedNotWrittenError<Tokens>;
    expect(error).toBeInstanceOf(RefreshedNotWrittenError);
    expect(isRedlockError(error) && error.code).toBe("REFRESHED_NOT_WRITTEN");
    expect([error.key, error.value.name, error.cause]).toEqual(["n", "t1", new Error("the store is down")]);
    expect(inspect(error) + JSON.stringify(error)).not.toMatch(/\bt1\b/);
    expect(values("n")).toEqual(nowhere);
  });

  test.each<[string, unknown]>([
    ["0", 0],
    ["the answer of a database", { rowCount: 0 }],
  ])("is in the error where write returns %s: nobody knows what it means", async (_what, result) => {
    const { client, call, runtime } = newWorld();
    let writes = 0;
    const write = () => {
      writes += 1;
      return result as boolean;
    };
    const failed = call(client(), { write });
    await runtime.advance(1_000);
    const error = failed.error as RefreshedNotWrittenError<Tokens>;
    expect(error).toBeInstanceOf(RefreshedNotWrittenError);
    expect([writes, error.value.name]).toEqual([1, "t1"]);
    expect(error.message).toMatch(/"n" .* write .*must be true .*, or false .*rowCount === 1/);
  });

  test("is written although its first write hangs: after half of the ttl it is written again", async () => {
    const { client, call, runtime, store } = newWorld();
    let writes = 0;
    store.fail = () => (writes++ === 0 ? new Promise<void>(() => undefined) : undefined);
    const slow = call(client());
    await runtime.advance(4_900);
    expect(slow.settled).toBe(false);
    await runtime.advance(300);
    expect([slow.value?.name, store.row.name]).toEqual(["t1", "t1"]);
  });

  test("is given up where the store has a newer one", async () => {
    const { client, call, runtime, store } = newWorld();
    const newer = { name: "newer", until: start + life };
    const overtaken = call(client(), {
      refresh: () => {
        Object.assign(store, { row: newer, fence: 2 ** 50 });
        return { name: "t1", until: start + life };
      },
    });
    await runtime.advance(100);
    expect([overtaken.value, store.row]).toEqual([newer, newer]);
  });

  test("is in the error where the store refuses it, and has none that is fresh", async () => {
    const { client, call, runtime } = newWorld();
    const refused = call(client(), { write: () => false });
    await runtime.advance(1_000);
    expect(refused.error).toBeInstanceOf(RefreshedNotWrittenError);
    expect((refused.error as RefreshedNotWrittenError<Tokens>).value.name).toBe("t1");
  });
});
