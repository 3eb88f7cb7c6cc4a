import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { handoff, LockHeldError, LockLostError, type RedlockEvent, resume } from "../../src/index.ts";
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
      expect(await lock.extend()).toBeGreaterThan(30_000);
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

    test("after the validity or the release rejects without a request", async () => {
      const redlock = local.redlock();
      const [expired, released] = await Promise.all([
        redlock.acquire(newResource(), { ttl: paced(300) }),
        redlock.acquire(newResource()),
      ]);
      await released.release();
      await until(() => expired.remaining() <= 0, "the end of the validity");
      const before = local.requests();
      await expect(expired.extend()).rejects.toBeInstanceOf(LockLostError);
      await expect(released.extend()).rejects.toBeInstanceOf(LockLostError);
      expect(local.requests()).toBe(before);
    });

    test("may run concurrently with a release", async () => {
      const resource = newResource();
      const lock = await local.redlock().acquire(resource);
      const extensions = [lock.extend(20_000), lock.extend(30_000)].map((extension) =>
        extension.catch((error: unknown) => error),
      );
      await lock.release();
      await Promise.all(extensions);
      expect(lock.remaining()).toBe(0);
      expect(await local.holders(resource)).toBe(0);
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

    test("is bounded by the deadline", async () => {
      const limit = paced(1_000);
      const lock = await local.redlock().acquire(newResource(), { deadline: Date.now() + limit });
      expect(lock.remaining()).toBeLessThanOrEqual(limit);
      await lock.extend(60_000);
      expect(lock.remaining()).toBeLessThanOrEqual(limit);
      await until(() => lock.signal.aborted, "the deadline");
      await expect(lock.extend()).rejects.toBeInstanceOf(LockLostError);
    });

    test("the deadline also ends waiting", async () => {
      const resource = newResource();
      const redlock = local.redlock({ backoff: { min: 2, max: 10 } });
      await redlock.acquire(resource);
      const deadline = Date.now() + paced(200);
      const error = await rejection(redlock.acquire(resource, { wait: 60_000, deadline }));
      expect((error as { code: string }).code).toBe("LOCK_HELD");
    });
  });

  describe("using", () => {
    test("returns the routine's result and releases", async () => {
      const resource = newResource();
      const result = await local.redlock().using(resource, async (lock) => {
        expect(await lock.verify()).toBe(true);
        return { of: lock.resources };
      });
      expect(result).toEqual({ of: [resource] });
      expect(await local.holders(resource)).toBe(0);
    });

    test("rejects with the routine's error and releases", async () => {
      const resource = newResource();
      const failure = new Error("the routine's own");
      const call = local.redlock().using(resource, { ttl: 1_000 }, () => {
        throw failure;
      });
      expect(await rejection(call)).toBe(failure);
      expect(await local.holders(resource)).toBe(0);
    });

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

    test("extends in time after a shorter extension by hand", async () => {
      const { redlock, events } = local.observed({ ttl: 60_000 });
      const ttl = paced(1_500);
      await redlock.using(newResource(), async (lock) => {
        await lock.extend(ttl);
        await until(() => events.filter(({ type }) => type === "extended").length >= 3, "extensions");
        expect(await lock.verify()).toBe(true);
        expect(lock.ttl).toBe(ttl);
      });
    });

    test("does not extend without autoExtend", async () => {
      const { redlock, events } = local.observed({ ttl: paced(300), autoExtend: true });
      const call = redlock.using(newResource(), { autoExtend: false }, (lock) =>
        until(() => lock.signal.aborted, "the end of the validity"),
      );
      await expect(call).rejects.toBeInstanceOf(LockLostError);
      expect(typesOf(events)).not.toContain("extended");
    });

    test("rejects with the loss when the lock was lost, and stops extending", async () => {
      const resource = newResource();
      const { redlock, events } = local.observed({ ttl: paced(1_500) });
      let requests = 0;
      const call = redlock.using(resource, async (lock) => {
        await local.remove(resource);
        await until(() => lock.signal.aborted, "the loss");
        requests = local.requests();
        // Long enough that another extension would have been sent.
        await until(() => Date.now() > at(events, "lost") + paced(800), "the time of another extension");
        expect(local.requests()).toBe(requests);
        return "never seen";
      });
      const error = await rejection(call);
      expect(error).toBeInstanceOf(LockLostError);
      expect(typesOf(events).filter((type) => type === "lost")).toHaveLength(1);
      expect(local.requests()).toBe(requests + local.set.count);
    });

    test("the routine's own error takes precedence over the loss", async () => {
      const failure = new Error("the routine's own");
      const call = local
        .redlock({ ttl: paced(300), autoExtend: false })
        .using(newResource(), async (lock) => {
          await until(() => lock.signal.aborted, "the end of the validity");
          throw failure;
        });
      expect(await rejection(call)).toBe(failure);
    });
  });

  describe("autoExtend", () => {
    test("extends an acquired lock until its release", async () => {
      const resource = newResource();
      const { redlock, events } = local.observed({ ttl: paced(1_500), autoExtend: true });
      const lock = await redlock.acquire(resource);
      await until(() => typesOf(events).filter((type) => type === "extended").length >= 2, "extensions");
      expect(await lock.release()).toBe(true);
      const requests = local.requests();
      const another = Date.now() + paced(800);
      await until(() => Date.now() > another, "the time of another extension");
      expect(local.requests()).toBe(requests);
    });

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

    test("extends a resumed lock", async () => {
      const resource = newResource();
      const lock = await local.redlock({ ttl: paced(1_500) }).acquire(resource);
      const { redlock, events } = local.observed({ autoExtend: true });
      const resumed = await resume(redlock, JSON.parse(JSON.stringify(await handoff(lock))));
      await until(() => typesOf(events).filter((type) => type === "extended").length >= 2, "extensions");
      expect(await resumed.release()).toBe(true);
    });
  });

  test("events report what happened and what it cost", async () => {
    const resource = newResource();
    const { redlock, events } = local.observed();
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

  test("a hook that throws or rejects has no effect", async () => {
    for (const onEvent of [
      () => {
        throw new Error("the hook's own");
      },
      () => Promise.reject(new Error("the hook's own")),
    ]) {
      const lock = await local.redlock({ onEvent }).acquire(newResource());
      await lock.extend();
      expect(await lock.release()).toBe(true);
    }
  });
}

/** When the first event of a type was first seen by this function; Infinity if there is none yet. */
const seen = new WeakMap<RedlockEvent, number>();
function at(events: readonly RedlockEvent[], type: RedlockEvent["type"]): number {
  const event = events.find((each) => each.type === type);
  if (!event) return Infinity;
  const time = seen.get(event) ?? Date.now();
  seen.set(event, time);
  return time;
}
