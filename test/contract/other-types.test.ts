import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Ask } from "../../src/endpoints/ask.ts";
import { type QuorumError, Redlock } from "../../src/index.ts";
import { forceRelease, inspect } from "../../src/inspect/index.ts";
import type { Settings } from "../../src/lock/options.ts";
import type { Call } from "../../src/quorum/round.ts";
import { type Cell, claim, keep } from "../../src/redis/cell.ts";
import { keyOf } from "../../src/redis/keys.ts";
import { systemRuntime } from "../../src/runtime.ts";
import { queued } from "../../src/sync/fair-lock.ts";
import { intervalOf } from "../../src/sync/once.ts";
import { permits } from "../../src/sync/semaphore.ts";
import { askOf } from "../support/ask.ts";
import { newResource } from "../support/local-endpoints.ts";
import { rejection } from "../support/outcomes.ts";
import { type OpenStore, storesOf } from "../support/stores.ts";

// MGET finds nothing at a key of another type. What would write there fails with Redis's own error, and leaves it.

/** An operation on what has this name, at one endpoint. */
type Operation = (call: Ask, name: string) => Promise<unknown>;

const ttl = 60_000;
const [value, other] = ["1", "2"].map((digit) => `t${digit.repeat(32)}`) as [string, string];
const settings = {
  runtime: systemRuntime,
  prefix: "redlock",
  timeout: ttl,
  wait: ttl,
  backoff: {},
} as Settings;
const keyFor = (kind: string, name: string) => keyOf(settings.prefix, kind, name);
const keysFor = (kinds: readonly string[], name: string) => kinds.map((kind) => keyFor(kind, name));

const cellOf = (name: string): Cell => {
  const [lock, tombstone, counter] = keysFor(["lock", "void", "fence"], name) as [string, string, string];
  return { keys: [lock], value, tombstone, counters: { keys: [counter], least: 5, retention: ttl } };
};
const claimOf = (name: string): Cell => {
  const [record] = keysFor(["idem"], name) as [string];
  const { keys, ...rest } = cellOf(name);
  return { ...rest, keys: [record, ...keys], values: [`P1 ${value}`, value] };
};
const slotOf = (name: string) => ({ keys: keysFor(["slot:0"], name), value });
const permit = (call: Ask, name: string) =>
  permits({ ...settings, endpoints: [call.endpoint] }, { name, limit: 1 });
const pending = { isOver: false, hasDoneNothing: false } as Call;
const waiters = new Map<string, ReturnType<typeof queued>>();
/** One that waits for a fair lock: it has one ticket for all its requests. */
const waiter = (nonce: string, name: string) => {
  const known = waiters.get(name + nonce) ?? queued(settings, name);
  waiters.set(name + nonce, known);
  return { ...known, cell: known.cell(nonce) };
};
const queueFor = (nonce: string, call: Ask, name: string) => {
  const { claim, cell } = waiter(nonce, name);
  return claim(call as Call, cell, ttl);
};
/** An interval with its next cell. */
const interval = (name: string) => {
  const protocol = intervalOf(settings, name, ttl);
  return { ...protocol, cell: protocol.cell(value) };
};

const lock: Operation = (call, name) => claim(call, cellOf(name), ttl);
const begin: Operation = (call, name) => claim(call, claimOf(name), ttl);
const takeSlot: Operation = (call, name) => permit(call, name).claim(call as Call, slotOf(name), ttl);
const lockFair: Operation = (call, name) => queueFor(value, call, name);
const lineUp: Operation = (call, name) => queueFor(other, call, name);
const claimInterval: Operation = (call, name) => {
  const { claim, cell } = interval(name);
  return claim(call as Call, cell, ttl);
};

const rows: readonly {
  readonly what: string;
  readonly run: Operation;
  /** The kinds of keys that it may write where nothing is. */
  readonly kinds: readonly string[];
  readonly before?: readonly Operation[];
}[] = [
  { what: "an acquire", kinds: ["lock", "fence"], run: lock },
  {
    what: "an extension",
    kinds: ["fence"],
    before: [lock],
    run: (call, name) => keep(call, cellOf(name), ttl),
  },
  { what: "a run's begin", kinds: ["idem", "lock", "fence"], run: begin },
  {
    what: "a run's extension",
    kinds: ["fence"],
    before: [begin],
    run: (call, name) => keep(call, claimOf(name), ttl),
  },
  { what: "a semaphore's acquire", kinds: ["limit", "slot:0"], run: takeSlot },
  {
    what: "a semaphore's extension",
    kinds: ["limit"],
    before: [takeSlot],
    run(call, name) {
      const { confirm, extend } = permit(call, name);
      const own = slotOf(name);
      const granted = { outcome: "granted", slot: own.keys[0], free: new Set<string>(), inUse: 1 } as const;
      void confirm!({ answers: () => [granted] } as unknown as Parameters<typeof confirm & {}>[0], own, ttl);
      return extend(call as Call, own, ttl);
    },
  },
  { what: "a fair lock's acquire", kinds: ["fair"], run: lockFair },
  { what: "a fair lock's wait", kinds: ["queue"], before: [lockFair], run: lineUp },
  { what: "a fair lock's turn", kinds: ["fair"], before: [lockFair, lineUp], run: lineUp },
  {
    what: "a fair lock's rollback",
    kinds: ["queue"],
    before: [lockFair],
    run(call, name) {
      const { release, cell } = waiter(value, name);
      return release(call as Call, cell, pending, false);
    },
  },
  { what: "a claim of an interval", kinds: ["once"], run: claimInterval },
  {
    what: "a run of an interval",
    kinds: ["once-end", "once-fence"],
    before: [claimInterval],
    run(call, name) {
      const { confirmsAgain, extend, cell } = interval(name);
      confirmsAgain();
      return extend(call as Call, cell, ttl);
    },
  },
];

describe.each(storesOf([1]))("a key of another type, on $title", ({ open }) => {
  let store: OpenStore;
  beforeAll(async () => {
    store = await open();
  });
  afterAll(() => store.close());

  const expectForeign = async (redlock: Redlock, name: string, kind: string) => {
    const error = (await rejection(inspect(redlock, name))) as QuorumError;
    expect(error.votes.map(({ cause }) => cause?.kind)).toEqual(["malformed"]);
    expect(error.message).toContain(`the key ${keyFor(kind, name)} has foreign data: rename or delete it`);
  };
  const call = () => askOf(store.endpoints[0]!);
  const putHash = async (key: string) => {
    await store.execute(0, ["DEL", key]);
    await store.execute(0, ["HSET", key, "f", "x"]);
  };
  const hashAt = (key: string) => store.execute(0, ["HMGET", key, "f"]);
  const cases = rows.flatMap(({ what, kinds, run, before = [] }) =>
    kinds.map((kind) => [what, kind, run, before] as const),
  );

  test.each(cases)("stays where %s finds it: %s", async (_, kind, run, before) => {
    const name = newResource();
    for (const operation of before) await operation(call(), name);
    const key = keyFor(kind, name);
    await putHash(key);
    const { message } = (await rejection(run(call(), name))) as Error;
    expect(message).toMatch(/WRONGTYPE.* has foreign data: rename or delete it/s);
    expect(message).toContain(key);
    expect(await hashAt(key)).toEqual(["x"]);
  });

  test("is held for an acquire that asks only whether it is free, and inspect names it", async () => {
    const name = newResource();
    const redlock = new Redlock({ endpoints: store.endpoints });
    await putHash(keyFor("lock", name));
    expect(await redlock.tryAcquire(name)).toBeNull();
    await expectForeign(redlock, name, "lock");
    expect(await forceRelease(redlock, name)).toBe(true);
    expect((await inspect(redlock, name)).held).toBe(false);
  });

  test("is a counter beyond 2^53 to inspect, too", async () => {
    const name = newResource();
    const redlock = new Redlock({ endpoints: store.endpoints });
    await store.execute(0, ["SET", keyFor("fence", name), String(2 ** 53)]);
    await expectForeign(redlock, name, "fence");
  });

  test("is an endpoint's error, and what was written beside it is rolled back", async () => {
    const names = [newResource(), newResource()] as const;
    const [written, inTheWay] = names.map((name) => keyFor("lock", name)) as [string, string];
    await putHash(inTheWay);
    const redlock = new Redlock({ endpoints: store.endpoints, fencing: true });
    const { votes } = (await rejection(redlock.acquire(names, { wait: 0 }))) as QuorumError;
    expect(votes.map(({ cause }) => cause?.kind)).toEqual(["redis"]);
    expect([await store.execute(0, ["EXISTS", written]), await hashAt(inTheWay)]).toEqual([0, ["x"]]);
  });
});
