import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { LockHeldError, LockLostError, type RedlockEvent } from "../../src/index.ts";
import { type Local, newResource } from "./local-endpoints.ts";
import { rejection } from "./outcomes.ts";
import { paced } from "./pace.ts";
import { until } from "./until.ts";

/** The contract of held locks on any set of endpoints: extend, validity, loss, `using`, `autoExtend`, events. */
export function lockLifetimeContract(open: () => Promise<Local>): void {
  let local: Local;
  beforeAll(async () => {
    local = await open();
  });
  beforeEach(() => local.reset());
  afterAll(() => local.close());

  const typesOf = (events: readonly RedlockEvent[]) => events.map(({ type }) => type);
  const onQuorum = (values: readonly number[], test: (value: number) => boolean) =>
    values.filter(test).length >= local.quorum;

  describe("extend", () => {
    test("extends on a quorum, from now on", async () => {
      const resource = newResource();
      const lock = await local.redlock({ ttl: 5_000 }).acquire(resource);
      expect(await lock.extend(40_000)).toBeGreaterThan(30_000);
      expect(lock.ttl).toBe(40_000);
      expect(lock.remaining()).toBeGreaterThan(30_000);
      expect(onQuorum(await local.expiries(resource), (ms) => ms > lock.remaining())).toBe(true);
      // One that has lost the lock gets it back.
      if (local.set.count > 2) await local.remove(resource, [0]);
      expect(await lock.extend()).toBeGreaterThan(30_000);
      await until(async () => (await local.holders(resource)) === local.set.count, "all endpoints");
    });

    test("accepts a short ttl", async () => {
      const ttl = paced(1_000);
      const resource = newResource();
      const lock = await local.redlock({ ttl: 60_000 }).acquire(resource);
      expect(await lock.extend(ttl)).toBeLessThan(ttl);
      expect(lock.ttl).toBe(ttl);
      expect(onQuorum(await local.expiries(resource), (ms) => ms <= ttl)).toBe(true);
      expect(await lock.extend(60_000)).toBeGreaterThan(50_000);
      expect(onQuorum(await local.expiries(resource), (ms) => ms > 50_000)).toBe(true);
    });

    test("of a lost lock creates nothing and reports the loss at once", async () => {
      const resource = newResource();
      const lock = await local.redlock().acquire(resource);
      const { signal } = lock;
      await local.remove(resource);
      const error = await rejection(lock.extend());
      expect(error).toBeInstanceOf(LockLostError);
      expect((error as LockLostError).resources).toEqual([resource]);
      expect(signal.reason).toBe(error);
      expect(lock.remaining()).toBe(0);
      expect(await local.holders(resource)).toBe(0);
      const before = local.requests();
      await expect(lock.extend()).rejects.toBe(error);
      expect(await lock.verify()).toBe(false);
      expect(local.requests()).toBe(before);
    });

    test("leaves another owner's lock alone", async () => {
      const resource = newResource();
      const lock = await local.redlock().acquire(resource);
      await local.remove(resource);
      await local.put(resource, [...local.endpoints.keys()], "somebody-else", 60_000);
      await expect(lock.extend(100_000)).rejects.toBeInstanceOf(LockLostError);
      expect((await local.expiries(resource)).every((ms) => ms <= 60_000)).toBe(true);
      expect(new Set(await local.values(resource))).toEqual(new Set(["somebody-else"]));
    });
  });

  describe("validity", () => {
    test("ends before the keys expire, and aborts the signal", async () => {
      const resource = newResource();
      const { redlock, events } = local.observed();
      const lock = await redlock.acquire(resource, { ttl: paced(2_000), driftFactor: 0.5 });
      await new Promise((resolve) => lock.signal.addEventListener("abort", resolve));
      expect(await local.holders(resource)).toBeGreaterThanOrEqual(local.quorum);
      expect(lock.remaining()).toBeLessThanOrEqual(0);
      expect(lock.signal.reason).toBeInstanceOf(LockLostError);
      expect(typesOf(events)).toEqual(["acquiring", "acquired", "lost"]);
    });
  });

  describe("using", () => {
    test("extends for as long as the routine runs", async () => {
      const resource = newResource();
      const { redlock, events } = local.observed({ ttl: paced(1_500) });
      await redlock.using(resource, async (lock) => {
        await until(() => typesOf(events).filter((type) => type === "extended").length >= 2, "extensions");
        expect(lock.signal.aborted).toBe(false);
        expect(await lock.verify()).toBe(true);
        expect(await redlock.tryAcquire(resource, { ttl: 10_000 })).toBeNull();
      });
      expect(await local.holders(resource)).toBe(0);
    });
  });

  describe("autoExtend", () => {
    test("ends at maxHold, and so does the lock", async () => {
      const maxHold = paced(1_800);
      const resource = newResource();
      const { redlock, events } = local.observed({
        ttl: Math.round(maxHold * 0.7),
        maxHold,
        autoExtend: true,
      });
      const began = Date.now();
      const lock = await redlock.acquire(resource);
      await until(() => lock.signal.aborted, "the loss");
      expect(typesOf(events)).toContain("extended");
      expect(lock.signal.reason).toBeInstanceOf(LockLostError);
      await until(async () => (await local.holders(resource)) === 0, "the keys' expiry");
      expect(Date.now() - began).toBeGreaterThanOrEqual(maxHold - 100);
      expect(await redlock.acquire(resource, { ttl: 10_000, autoExtend: false })).toBeDefined();
    });
  });

  test("events report what happened and what it cost", async () => {
    const [first, resource] = [newResource(), newResource()];
    const { redlock, events } = local.observed();
    // What waits for a connection is not sent yet, and not counted.
    await redlock.acquire(first);
    await until(async () => (await local.holders(first)) === local.set.count, "all connections");
    events.splice(0);
    const lock = await redlock.acquire(resource, { fencing: true });
    await lock.extend(20_000);
    await redlock.tryAcquire(resource);
    await lock.release();
    const { count } = local.set;
    const cost = { requests: count, commands: expect.any(Number), elapsed: expect.any(Number) };
    const [id, other] = events.flatMap((event) => (event.type === "acquiring" ? [event.id!] : []));
    expect(other).toBeGreaterThan(id!);
    const resources = [resource];
    const error = expect.any(LockHeldError);
    const held = expect.any(Number);
    expect(events).toEqual([
      { type: "acquiring", id, resources },
      { type: "acquired", id, resources, rounds: 1, fence: lock.fence, ...cost },
      { type: "extended", id, resources, ttl: 20_000, ...cost },
      { type: "acquiring", id: other, resources },
      { type: "contended", id: other, resources, rounds: 1, retryIn: undefined, ...cost },
      { type: "notAcquired", id: other, resources, rounds: 1, error, ...cost },
      { type: "released", id, resources, held, freed: true, ...cost },
    ]);
  });
}

/** When the first event of a type was first seen by this function; Infinity if there is none yet. */
const seen = new WeakMap<RedlockEvent, number>();
function _at(events: readonly RedlockEvent[], type: RedlockEvent["type"]): number {
  const event = events.find((each) => each.type === type);
  if (!event) return Infinity;
  const time = seen.get(event) ?? Date.now();
  seen.set(event, time);
  return time;
}
