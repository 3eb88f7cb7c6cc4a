import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { LockHeldError, LockLostError } from "../../src/index.ts";
import { type Local, newResource } from "./local-endpoints.ts";
import { rejection } from "./outcomes.ts";
import { until } from "./until.ts";

/** The contract of held locks on any set of endpoints: extend, validity, loss, `using`, `autoExtend`, events. */
export function lockLifetimeContract(open: () => Promise<Local>): void {
  let local: Local;
  beforeAll(async () => {
    local = await open();
  });
  beforeEach(() => local.reset());
  afterAll(() => local.close());

  const onQuorum = (values: readonly number[], test: (value: number) => boolean) =>
    values.filter(test).length >= local.quorum;

  describe("extend", () => {
    test("extends on a quorum, from now on", async () => {
      const resource = newResource();
      const lock = await local.redlock().acquire(resource);
      expect(await lock.extend(900_000)).toBeGreaterThan(600_000);
      expect(lock.ttl).toBe(900_000);
      expect(lock.remaining()).toBeGreaterThan(600_000);
      expect(onQuorum(await local.expiries(resource), (ms) => ms > lock.remaining())).toBe(true);
      // One that has lost the lock gets it back.
      if (local.set.count > 2) await local.remove(resource, [0]);
      expect(await lock.extend()).toBeGreaterThan(600_000);
      await until(async () => (await local.holders(resource)) === local.set.count, "all endpoints");
    });

    test("accepts a shorter ttl", async () => {
      const resource = newResource();
      const lock = await local.redlock().acquire(resource);
      expect(await lock.extend(300_000)).toBeLessThan(300_000);
      expect(lock.ttl).toBe(300_000);
      expect(onQuorum(await local.expiries(resource), (ms) => ms <= 300_000)).toBe(true);
      expect(await lock.extend(900_000)).toBeGreaterThan(600_000);
      expect(onQuorum(await local.expiries(resource), (ms) => ms > 600_000)).toBe(true);
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
      await local.gone(resource);
      const before = local.requests();
      await expect(lock.extend()).rejects.toBe(error);
      expect(await lock.verify()).toBe(false);
      expect(local.requests()).toBe(before);
    });

    test("leaves another owner's lock alone", async () => {
      const resource = newResource();
      const lock = await local.redlock().acquire(resource);
      await local.remove(resource);
      await local.put(resource, [...local.endpoints.keys()], "somebody-else", 600_000);
      await expect(lock.extend(900_000)).rejects.toBeInstanceOf(LockLostError);
      expect((await local.expiries(resource)).every((ms) => ms <= 600_000)).toBe(true);
      expect(new Set(await local.values(resource))).toEqual(new Set(["somebody-else"]));
    });
  });

  test("events report what happened and what it cost", async () => {
    const [first, resource] = [newResource(), newResource()];
    const { redlock, events } = local.observed();
    // What waits for a connection is not sent yet, and not counted.
    await redlock.acquire(first);
    await until(async () => (await local.holders(first)) === local.set.count, "all connections");
    events.splice(0);
    const note = "who and why";
    const lock = await redlock.acquire(resource, { fencing: true, note });
    await lock.extend(900_000);
    await redlock.tryAcquire(resource, { fencing: true });
    await lock.release();
    const { count } = local.set;
    const cost = { requests: count, commands: expect.any(Number), elapsed: expect.any(Number) };
    const [id, other] = events.flatMap((event) => (event.type === "acquiring" ? [event.id!] : []));
    expect(other).toBeGreaterThan(id!);
    const resources = [resource];
    const error = expect.any(LockHeldError);
    const held = expect.any(Number);
    const holder = { note, expiresIn: expect.any(Number) };
    expect(events).toEqual([
      { type: "acquiring", id, resources },
      { type: "acquired", id, resources, rounds: 1, note, fence: lock.fence, ...cost },
      { type: "extended", id, resources, ttl: 900_000, ...cost },
      { type: "acquiring", id: other, resources },
      { type: "contended", id: other, resources, rounds: 1, retryIn: undefined, holder, ...cost },
      { type: "notAcquired", id: other, resources, rounds: 1, error, ...cost },
      { type: "released", id, resources, held, freed: true, ...cost },
    ]);
  });
}
