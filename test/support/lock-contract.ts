import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { handoff, resume } from "../../src/handoff/index.ts";
import { type Lock, LockHeldError, LockLostError, type RedlockEvent } from "../../src/index.ts";
import { forceRelease, inspect } from "../../src/inspect/index.ts";
import { type Local, newResource } from "./local-endpoints.ts";
import { rejection } from "./outcomes.ts";
import { until } from "./until.ts";

/** The contract of locks on any set of endpoints: acquire, extend, release, several resources, resume, operators, events. */
export function lockContract(open: () => Promise<Local>): void {
  let local: Local;
  beforeAll(async () => {
    local = await open();
  });
  beforeEach(() => local.reset());
  afterAll(() => local.close());

  const onQuorum = (values: readonly number[], test: (value: number) => boolean) =>
    values.filter(test).length >= local.quorum;
  const jsonOf = async (lock: Lock) => JSON.parse(JSON.stringify(await handoff(lock)));

  test("a lock is stored on a quorum, is exclusive, and is deleted by its release", async () => {
    const resource = newResource();
    const redlock = local.redlock({ ttl: 500_000 });
    const lock = await redlock.acquire(resource);
    expect(lock.resources).toEqual([resource]);
    expect(lock.ttl).toBe(500_000);
    expect(lock.fence).toBeUndefined();
    expect(lock.token).toMatch(/^[a-z]/);
    expect(lock.remaining()).toBeGreaterThan(0);
    expect(lock.remaining()).toBeLessThan(500_000);
    expect(lock.signal.aborted).toBe(false);
    expect(await local.holders(resource)).toBeGreaterThanOrEqual(local.quorum);
    const expiries = await local.expiries(resource);
    expect(expiries.filter((ms) => ms > lock.remaining()).length).toBeGreaterThanOrEqual(local.quorum);

    expect(await redlock.tryAcquire(resource)).toBeNull();
    expect(await redlock.tryAcquire(newResource())).not.toBeNull();

    expect(await lock.release()).toBe(true);
    await local.gone(resource);
    expect(lock.remaining()).toBe(0);
    expect(lock.signal.aborted).toBe(false);
    expect(await lock.release()).toBe(false);
    const next = await redlock.tryAcquire(resource);
    expect(next?.token).not.toBe(lock.token);
  });

  test("several resources are acquired and released together", async () => {
    const [a, b] = [newResource("a"), newResource("b")];
    const redlock = local.redlock();
    const lock = await redlock.acquire([a, b, a]);
    expect(lock.resources).toEqual([a, b]);
    expect(await redlock.tryAcquire(a)).toBeNull();
    expect(await redlock.tryAcquire(b)).toBeNull();
    expect(await redlock.tryAcquire([newResource(), b])).toBeNull();
    expect(await lock.verify()).toBe(true);
    expect(await lock.extend(900_000)).toBeGreaterThan(600_000);
    const isLong = async () => Math.min(...(await local.expiries(b))) > 600_000;
    await until(isLong, "the extension everywhere");
    expect(await lock.release()).toBe(true);
    await Promise.all([local.gone(a), local.gone(b)]);
  });

  test("another process resumes a lock from its JSON", async () => {
    const resource = newResource();
    const lock = await local.redlock({ fencing: true, ttl: 300_000 }).acquire(resource);
    const resumed = await resume(local.redlock(), await jsonOf(lock));
    expect(resumed.resources).toEqual([resource]);
    expect([resumed.fence, resumed.ttl]).toEqual([lock.fence, 300_000]);
    expect(resumed.token).not.toBe(lock.token);
    expect(resumed.remaining()).toBeGreaterThan(0);
    expect(await resumed.verify()).toBe(true);
    expect(await resumed.extend(900_000)).toBeGreaterThan(600_000);
    expect(resumed.remaining()).toBeGreaterThan(600_000);
    expect(await resumed.release()).toBe(true);
    await local.gone(resource);
  });

  test.each(['\u0000\u001b[2J\r\n"\\{tag} 日本 🐘 \u202e', "é".repeat(255), "null"])(
    "a note is shown as it was given, and is handed over: %j",
    async (note) => {
      const resource = newResource();
      const redlock = local.redlock({ ttl: 900_000, fencing: true });
      const lock = await redlock.acquire(resource, { note });
      const error = (await rejection(redlock.acquire(resource, { wait: 0 }))) as LockHeldError;
      expect(error.holder).toEqual({ note, expiresIn: expect.any(Number) });
      expect(error.holder!.expiresIn).toBeGreaterThan(600_000);
      expect(await lock.extend()).toBeGreaterThan(600_000);
      const resumed = await resume(redlock, await jsonOf(lock));
      expect(await inspect(redlock, resource)).toMatchObject({ held: true, note });
      expect(await resumed.release()).toBe(true);
      await local.gone(resource);
      const plain = local.redlock();
      const held = await plain.acquire(resource, { note });
      expect(await inspect(plain, resource)).toMatchObject({ held: true, note });
      expect(await held.release()).toBe(true);
      await local.gone(resource);
    },
  );

  describe("operators", () => {
    test("inspect a resource without changing it", async () => {
      const resource = newResource();
      const redlock = local.redlock({ ttl: 900_000 });
      const free = await inspect(redlock, resource);
      expect(free).toMatchObject({ held: false, remaining: 0, fence: undefined });
      expect(free.votes.map(({ outcome }) => outcome)).toEqual(local.endpoints.map(() => "free"));
      const lock = await redlock.acquire(resource, { fencing: true });
      await until(async () => (await local.holders(resource)) === local.set.count, "the slower endpoints");
      const held = await inspect(redlock, resource);
      expect(held).toMatchObject({ held: true, fence: lock.fence });
      expect(held.remaining).toBeGreaterThan(600_000);
      expect(held.remaining).toBeLessThanOrEqual(900_000);
      expect(held.votes.map(({ endpoint }) => endpoint)).toEqual(local.endpoints.map(({ name }) => name));
      expect(held.votes.every(({ outcome, fence }) => outcome === "held" && fence === lock.fence)).toBe(true);
      expect(JSON.stringify(held)).not.toContain(lock.token);
      expect(await lock.verify()).toBe(true);
    });

    test("release a resource by force", async () => {
      const resource = newResource();
      const redlock = local.redlock();
      const lock = await redlock.acquire(resource);
      await until(async () => (await local.holders(resource)) === local.set.count, "the slower endpoints");
      expect(await forceRelease(redlock, resource)).toBe(true);
      await local.gone(resource);
      expect(await forceRelease(redlock, resource)).toBe(false);
      await expect(lock.extend()).rejects.toBeInstanceOf(LockLostError);
      await local.gone(resource);
    });
  });

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
  });

  test("events report what happened, and every request", async () => {
    const [first, resource] = [newResource(), newResource()];
    const events: RedlockEvent[] = [];
    const requests: RedlockEvent[] = [];
    const redlock = local.redlock({
      onEvent: (event) => (event.type === "request" ? requests : events).push(event),
    });
    const { count } = local.set;
    await redlock.acquire(first);
    await until(() => requests.length === count, "all connections");
    events.splice(0);
    requests.splice(0);
    const note = "who and why";
    const lock = await redlock.acquire(resource, { fencing: true, note });
    await lock.extend(900_000);
    await redlock.tryAcquire(resource, { fencing: true });
    await lock.release();
    await until(() => requests.length === 4 * count, "all requests");
    const elapsed = expect.any(Number);
    const resources = [resource];
    const error = expect.any(LockHeldError);
    const held = expect.any(Number);
    const holder = { note, expiresIn: expect.any(Number) };
    expect(events).toEqual([
      { type: "acquired", resources, rounds: 1, note, fence: lock.fence, elapsed },
      { type: "extended", resources, ttl: 900_000, elapsed },
      { type: "contended", resources, rounds: 1, retryIn: undefined, holder, elapsed },
      { type: "notAcquired", resources, rounds: 1, error, elapsed },
      { type: "released", resources, held, freed: true, elapsed },
    ]);
    const endpoint = expect.any(String);
    for (const request of requests) {
      expect(request).toEqual({ type: "request", endpoint, commands: 1, elapsed, failure: undefined });
    }
    const names = requests.map((request) => request.type === "request" && request.endpoint);
    expect([...new Set(names)].map((name) => names.filter((one) => one === name).length)).toEqual(
      Array(count).fill(4),
    );
  });
}
