import { createHash } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { isRedlockError, LockLostError } from "../../../src/index.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { upstashFlag } from "../../../src/redis/script.ts";
import { LimitMismatchError, type Permit, Semaphore } from "../../../src/sync/index.ts";
import { slotScript } from "../../../src/sync/internal/slots.ts";
import { eachInTurns } from "../../support/in-turns.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { isSettled, rejection } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import { allArrived, type OpenStore } from "../../support/stores.ts";
import { until } from "../../support/until.ts";
import { onEach, standing, stores, type Visitor, visitor } from "./stand.ts";

test("slotScript has the hash of the text that each dialect sends", () => {
  const sha1 = (text: string) => createHash("sha1").update(text).digest("hex");
  const { source } = slotScript;
  expect(slotScript.sha).toEqual({ redis: sha1(source), upstash: sha1(upstashFlag + source) });
});

eachInTurns(stores([1, 2, 3, 5], [1, 3]))("Semaphore on $title", ({ open, count }) => {
  const quorum = Math.floor(count / 2) + 1;
  let store: OpenStore;
  let first: Visitor;
  let second: Visitor;

  beforeAll(async () => {
    store = await open();
    first = visitor(store, { ttl: 20_000 });
    second = visitor(store, { ttl: 20_000 });
  });
  afterAll(() => store.close());

  const taken = async (name: string, slot: number) =>
    (await standing(store, `slot:${slot}`, name)).filter((value) => value !== null).length;

  test("grants as many permits as its limit, each slot once", async () => {
    const name = newResource("semaphore");
    const semaphore = new Semaphore(first.redlock, name, { limit: 3 });
    const permits: Permit[] = [];
    for (let round = 0; round < 3; round += 1) {
      const permit = await semaphore.tryAcquire();
      expect(permit, `permit ${round + 1} of 3`).not.toBeNull();
      permits.push(permit!);
    }
    expect(permits.map(({ slot }) => slot).sort()).toEqual([0, 1, 2]);
    for (const { slot, ttl, remaining, signal } of permits) {
      expect(await taken(name, slot)).toBeGreaterThanOrEqual(quorum);
      expect([ttl, signal.aborted, remaining() > 0, remaining() < 20_000]).toEqual([
        20_000,
        false,
        true,
        true,
      ]);
    }
    const late = new Semaphore(second.redlock, name, { limit: 3 });
    expect(await late.tryAcquire()).toBeNull();
    expect(await rejection(late.acquire({ wait: 0 }))).toMatchObject({
      code: "LOCK_HELD",
      message: expect.stringContaining("all 3 permits are held"),
    });

    const [given, ...kept] = permits;
    expect(await given!.release()).toBe(true);
    expect(await taken(name, given!.slot)).toBe(0);
    expect([given!.remaining(), given!.signal.aborted, await given!.release()]).toEqual([0, false, false]);
    expect(await Promise.all(kept.map((permit) => permit.verify()))).toEqual([true, true]);
    const next = await new Semaphore(second.redlock, name, { limit: 3 }).tryAcquire();
    expect(next?.slot).toBe(given!.slot);
  });

  test("waits until a permit is released", async () => {
    const name = newResource("semaphore");
    const semaphore = new Semaphore(first.redlock, name, { limit: 1 });
    const permit = await semaphore.acquire();
    const waiting = visitor(store);
    const other = new Semaphore(waiting.redlock, name, { limit: 1 }).acquire({ wait: 60_000 });
    await until(() => waiting.events.some(({ type }) => type === "contended"), "contention");
    expect(await isSettled(other)).toBe(false);
    await permit.release();
    expect((await other).remaining()).toBeGreaterThan(0);
  });

  test("a dead holder's permit is free after its ttl", async () => {
    const name = newResource("semaphore");
    const dead = await new Semaphore(first.redlock, name, { limit: 1 }).acquire({ ttl: paced(300) });
    const next = await new Semaphore(second.redlock, name, { limit: 1 }).acquire({ wait: 60_000 });
    expect(dead.remaining()).toBeLessThanOrEqual(0);
    expect(dead.signal.reason).toBeInstanceOf(LockLostError);
    expect(await next.verify()).toBe(true);
    expect(await dead.release()).toBe(false);
    expect(await next.verify()).toBe(true);
  });

  test("every key expires", async () => {
    const name = newResource("semaphore");
    const permit = await new Semaphore(first.redlock, name, { limit: 2 }).acquire({ ttl: 5_000 });
    await allArrived(first.links);
    for (const kind of ["limit", `slot:${permit.slot}`]) {
      for (const ms of await onEach(store, "PTTL", keyOf("redlock", kind, name))) {
        expect(ms as number).toBeGreaterThan(permit.remaining() - 100);
        expect(ms as number).toBeLessThanOrEqual(5_000);
      }
    }
  });

  test("extend prolongs the permit and its limit; a shorter extend leaves the limit's ttl", async () => {
    const name = newResource("semaphore");
    const semaphore = new Semaphore(first.redlock, name, { limit: 2 });
    const permit = await semaphore.acquire({ ttl: 3_000 });
    await allArrived(first.links);
    expect(await permit.extend(40_000)).toBeGreaterThan(30_000);
    await allArrived(first.links);
    for (const kind of ["limit", `slot:${permit.slot}`]) {
      const ttls = (await onEach(store, "PTTL", keyOf("redlock", kind, name))) as number[];
      expect(Math.min(...ttls)).toBeGreaterThan(30_000);
    }
    expect(await permit.extend(15_000)).toBeLessThan(15_000);
    await allArrived(first.links);
    const [slots, limits] = await Promise.all(
      [`slot:${permit.slot}`, "limit"].map((kind) => onEach(store, "PTTL", keyOf("redlock", kind, name))),
    );
    expect(Math.max(...(slots as number[]))).toBeLessThanOrEqual(15_000);
    // It may be the limit of another holder, too.
    expect(Math.min(...(limits as number[]))).toBeGreaterThan(30_000);
  });

  test("a permit that is gone is lost at its next extension, and is not created again", async () => {
    const name = newResource("semaphore");
    const permit = await new Semaphore(first.redlock, name, { limit: 2 }).acquire();
    await allArrived(first.links);
    await onEach(store, "DEL", keyOf("redlock", `slot:${permit.slot}`, name));
    expect(await rejection(permit.extend())).toBeInstanceOf(LockLostError);
    expect(permit.signal.reason).toBeInstanceOf(LockLostError);
    expect(await taken(name, permit.slot)).toBe(0);
  });

  test("another limit is an error while a permit is held, and for its ttl", async () => {
    const name = newResource("semaphore");
    const permit = await new Semaphore(first.redlock, name, { limit: 2 }).acquire();
    const other = new Semaphore(second.redlock, name, { limit: 3 });
    for (const call of [() => other.acquire(), () => other.tryAcquire()]) {
      const error = await rejection(call());
      expect(error).toBeInstanceOf(LimitMismatchError);
      expect(isRedlockError(error)).toBe(true);
      expect(error).toMatchObject({ code: "LIMIT_MISMATCH", resource: name, limit: 3, inUse: 2 });
    }
    expect(await permit.verify()).toBe(true);
    await allArrived(second.links);
    for (const slot of [0, 1, 2]) expect(await taken(name, slot)).toBe(slot === permit.slot ? count : 0);
    // Once it has expired, the limit may change.
    await permit.release();
    await onEach(store, "PEXPIRE", keyOf("redlock", "limit", name), "1");
    await until(async () => (await standing(store, "limit", name)).every((value) => value === null));
    expect(await other.tryAcquire()).not.toBeNull();
  });

  test("a wrong limit that reached a minority first blocks those endpoints, and is not an error for others", async () => {
    const name = newResource("semaphore");
    const semaphore = new Semaphore(first.redlock, name, { limit: 2 });
    await store.execute(count - 1, ["SET", keyOf("redlock", "limit", name), "7", "PX", "60000"]);
    if (count < 3) {
      expect(await rejection(semaphore.tryAcquire())).toMatchObject({ code: "LIMIT_MISMATCH", inUse: 7 });
      return;
    }
    const permits = [await semaphore.tryAcquire(), await semaphore.tryAcquire()];
    expect(new Set(permits.map((permit) => permit?.slot))).toEqual(new Set([0, 1]));
    expect(await semaphore.tryAcquire()).toBeNull();
  });

  test("costs the requests and commands that are documented", async () => {
    const name = newResource("semaphore");
    const { redlock, links, events } = visitor(store);
    const semaphore = new Semaphore(redlock, name, { limit: 1 });
    const cost = () => {
      const costs = store.endpoints.map((_, index) => store.cost(index));
      return {
        requests: costs.reduce((sum, { requests }) => sum + requests, 0),
        commands: costs.reduce((sum, { billed }) => sum + billed, 0),
      };
    };
    const costOf = async (call: () => Promise<unknown>) => {
      const before = cost();
      await call();
      await allArrived(links);
      const after = cost();
      return { requests: after.requests - before.requests, commands: after.commands - before.commands };
    };
    let permit!: Permit;
    const acquired = await costOf(async () => {
      permit = await semaphore.acquire({ wait: 0 });
    });
    expect(acquired).toEqual({ requests: count, commands: 5 * count });
    expect(await costOf(() => permit.extend())).toEqual({ requests: count, commands: 5 * count });
    expect(await costOf(() => semaphore.tryAcquire())).toEqual({ requests: count, commands: 2 * count });
    // Events carry what was known at the time of the result: with one endpoint everything.
    if (count > 1) return;
    for (const [type, commands] of Object.entries({ acquired: 5, extended: 5, contended: 2 })) {
      expect(events.find((event) => event.type === type)).toMatchObject({ requests: 1, commands });
    }
  });

  test("`await using` releases the permit, and autoExtend keeps it until then", async () => {
    const name = newResource("semaphore");
    const auto = visitor(store);
    const semaphore = new Semaphore(auto.redlock, name, { limit: 1, ttl: paced(1_200), autoExtend: true });
    {
      await using permit = await semaphore.acquire();
      await until(() => auto.events.filter(({ type }) => type === "extended").length >= 2, "extensions");
      expect(permit.signal.aborted).toBe(false);
      expect(await permit.verify()).toBe(true);
    }
    expect(await taken(name, 0)).toBe(0);
  });

  test("names, prefixes and locks are separate", async () => {
    const name = newResource("semaphore");
    const make = (other: string, options = {}) =>
      new Semaphore(first.redlock, other, { limit: 1, ...options }).tryAcquire();
    expect(await make(name)).not.toBeNull();
    expect(await make(`${name}:0`)).not.toBeNull();
    expect(await make(`{${name}}`)).not.toBeNull();
    expect(await make(name, { prefix: "other" })).not.toBeNull();
    expect(await first.redlock.tryAcquire(name)).not.toBeNull();
    expect(await make(name)).toBeNull();
  });

  test("a repeated request acquires one permit", async () => {
    const name = newResource("semaphore");
    const twice = visitor(store);
    for (const link of twice.links) link.fate = () => "twice";
    const semaphore = new Semaphore(twice.redlock, name, { limit: 3 });
    const permits = [
      await semaphore.tryAcquire(),
      await semaphore.tryAcquire(),
      await semaphore.tryAcquire(),
    ];
    expect(new Set(permits.map((permit) => permit?.slot))).toEqual(new Set([0, 1, 2]));
    expect(await permits[0]!.extend(5_000)).toBeGreaterThan(0);
  });
});
