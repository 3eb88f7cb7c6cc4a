import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Idempotency } from "../../src/idempotency/index.ts";
import { type QuorumError, Redlock } from "../../src/index.ts";
import { forceRelease, inspect } from "../../src/inspect/index.ts";
import { keyOf } from "../../src/redis/keys.ts";
import { FairLock, Mailbox, once, Semaphore } from "../../src/sync/index.ts";
import { patient } from "../support/beyond-tests.ts";
import { newResource } from "../support/local-endpoints.ts";
import { rejection } from "../support/outcomes.ts";
import { type OpenStore, storesOf } from "../support/stores.ts";

// MGET finds nothing at a key of another type. What would write there fails with Redis's own error, and leaves it.

/** Something that is done with a name. */
type Operation = (redlock: Redlock, name: string) => Promise<unknown>;

const lock: Operation = (redlock, name) => redlock.acquire(name, { fencing: true });
const run: Operation = (redlock, name) => new Idempotency(redlock).run(name, { lock: name }, () => 1);
const take: Operation = (redlock, name) => new Semaphore(redlock, name, { limit: 1 }).acquire();
const queue: Operation = (redlock, name) => new FairLock(redlock, name).acquire({ wait: 50 });
const runOnce: Operation = (redlock, name) => once(redlock, name, { every: 60_000, wait: 0 }, () => 1);
const post: Operation = (redlock, name) =>
  new Mailbox(redlock, name).post({ id: "a", value: 1 }, () => undefined);

/** What finds a key of this kind, after something else. */
const rows: [what: string, kind: string, find: Operation, before?: Operation][] = [
  ["an acquire", "lock", lock],
  ["an acquire", "fence", lock],
  ["a run", "lock", run],
  ["a run", "fence", run],
  ["a semaphore", "limit", take],
  ["a semaphore", "slot:0", take],
  ["a fair lock", "fair", queue],
  ["a wait for a fair lock", "queue", queue, queue],
  ["once", "once", runOnce],
  ["a mailbox", "mailbox", post],
  ["a mailbox", "mailbox-order", post],
];

describe.each(storesOf([1]))("a key of another type, on $title", ({ open }) => {
  let store: OpenStore;
  let redlock: Redlock;
  beforeAll(async () => {
    store = await open();
    redlock = new Redlock({ ...patient, endpoints: store.endpoints, wait: 0 });
    // From here on it asks natively whether a lock is free.
    await (await redlock.acquire(newResource())).release();
  });
  afterAll(() => store.close());

  const keyFor = (kind: string, name: string) => keyOf("redlock", kind, name);
  const putHash = (key: string) => store.execute(0, ["HSET", key, "f", "x"]);
  const hashAt = (key: string) => store.execute(0, ["HMGET", key, "f"]);
  const expectForeign = async (name: string, kind: string) => {
    const error = (await rejection(inspect(redlock, name))) as QuorumError;
    expect(error.votes.map(({ cause }) => cause?.kind)).toEqual(["malformed"]);
    expect(error.message).toContain(`the key ${keyFor(kind, name)} has foreign data: rename or delete it`);
  };

  test.each(rows)("stays where %s finds it: %s", async (_, kind, find, before) => {
    const name = newResource();
    await before?.(redlock, name);
    const key = keyFor(kind, name);
    await putHash(key);
    const { votes, message } = (await rejection(find(redlock, name))) as QuorumError;
    expect(votes.map(({ cause }) => cause?.kind)).toEqual(["redis"]);
    expect(message).toMatch(/WRONGTYPE.* has foreign data: rename or delete it/s);
    expect(message).toContain(key);
    expect(await hashAt(key)).toEqual(["x"]);
  });

  test("is held for an acquire that asks only whether it is free, and inspect names it", async () => {
    const name = newResource();
    await putHash(keyFor("lock", name));
    expect(await redlock.tryAcquire(name)).toBeNull();
    await expectForeign(name, "lock");
    expect(await forceRelease(redlock, name)).toBe(true);
    expect((await inspect(redlock, name)).held).toBe(false);
  });

  test.each([String(2 ** 53), "x"])("is a counter of %s to inspect, too", async (text) => {
    const name = newResource();
    await store.execute(0, ["SET", keyFor("fence", name), text]);
    await expectForeign(name, "fence");
    if (text === "x") await expect(lock(redlock, name)).rejects.toThrow(/has foreign data/);
    expect(await store.execute(0, ["GET", keyFor("fence", name)])).toBe(text);
  });

  test("leaves nothing of what was written beside it", async () => {
    const names = [newResource(), newResource()] as const;
    const [written, inTheWay] = names.map((name) => keyFor("lock", name)) as [string, string];
    await putHash(inTheWay);
    await rejection(redlock.acquire(names, { fencing: true }));
    expect([await store.execute(0, ["EXISTS", written]), await hashAt(inTheWay)]).toEqual([0, ["x"]]);
  });
});
