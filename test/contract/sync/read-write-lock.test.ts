import { afterAll, beforeAll, expect, test } from "vitest";
import { LockLostError } from "../../../src/index.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { type Hold, ReadWriteLock, type SyncOptions } from "../../../src/sync/index.ts";
import { eachInTurns } from "../../support/in-turns.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { isSettled, rejection } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import { allArrived, type OpenStore } from "../../support/stores.ts";
import { until } from "../../support/until.ts";
import { onEach, stores, type Visitor, visitor } from "./stand.ts";

eachInTurns(stores([1, 2, 3, 5], [3]))("ReadWriteLock on $title", ({ open, count }) => {
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

  const countsOf = async (kind: string, name: string) =>
    (await onEach(store, "ZCARD", keyOf("redlock", kind, name))) as number[];
  const sumOf = (numbers: readonly number[]) => numbers.reduce((sum, number) => sum + number, 0);
  const holds = async (name: string) => sumOf(await countsOf("read-write", name));
  const announcements = async (name: string) => sumOf(await countsOf("writers", name));
  const make = ({ redlock }: Visitor, name: string, options: SyncOptions = {}) =>
    new ReadWriteLock(redlock, name, options);

  /** A writer that waits, and has been refused. */
  async function writerAt(name: string, signal?: AbortSignal) {
    const waiting = visitor(store, { ttl: 20_000 });
    const writing = make(waiting, name).acquireWrite({ wait: 60_000, signal });
    writing.catch(() => undefined);
    await until(() => waiting.events.some(({ type }) => type === "contended"), "contention");
    return { ...waiting, writing };
  }

  test("readers hold it together, a writer alone", async () => {
    const name = newResource("read-write");
    const [mine, theirs] = [make(first, name), make(second, name)];
    const reading = [await mine.acquireRead({ wait: 0 }), await theirs.acquireRead({ wait: 0 })];
    await allArrived([...first.links, ...second.links]);
    expect(await holds(name)).toBe(2 * count);
    for (const hold of reading) {
      expect(await theirs.tryAcquireWrite()).toBeNull();
      expect([hold.ttl, hold.remaining() > 0, hold.remaining() < 20_000]).toEqual([20_000, true, true]);
      expect(await hold.verify()).toBe(true);
      expect(await hold.release()).toBe(true);
      expect([await hold.release(), await hold.verify(), hold.signal.aborted]).toEqual([false, false, false]);
    }
    const writing = await theirs.acquireWrite({ wait: 0 });
    expect([await mine.tryAcquireRead(), await mine.tryAcquireWrite()]).toEqual([null, null]);
    expect([await theirs.tryAcquireRead(), await theirs.tryAcquireWrite()]).toEqual([null, null]);
    expect(await writing.extend(30_000)).toBeGreaterThan(20_000);
    expect(await writing.release()).toBe(true);
    await allArrived(second.links);
    expect([await holds(name), await announcements(name)]).toEqual([0, 0]);
    expect(await mine.tryAcquireRead()).not.toBeNull();
  });

  test("a waiting writer keeps new readers out, and present readers may extend", async () => {
    const name = newResource("read-write");
    const reading = await make(first, name).acquireRead();
    await allArrived(first.links);
    const { writing, links } = await writerAt(name);
    await until(async () => (await announcements(name)) === count, "announcements");
    expect(await make(second, name).tryAcquireRead()).toBeNull();
    expect(await reading.extend(30_000)).toBeGreaterThan(20_000);
    expect(await isSettled(writing)).toBe(false);
    const later = visitor(store);
    const next = make(later, name).acquireRead({ wait: 60_000 });
    await until(() => later.events.some(({ type }) => type === "contended"), "contention");
    await reading.release();
    const hold = await writing;
    expect(await isSettled(next)).toBe(false);
    expect(await hold.verify()).toBe(true);
    await hold.release();
    await allArrived(links);
    expect(await announcements(name)).toBe(0);
    expect(await (await next).verify()).toBe(true);
  });

  test("a writer is served although readers keep coming", async () => {
    const name = newResource("read-write");
    const readers = [visitor(store, { ttl: 20_000 }), visitor(store, { ttl: 20_000 })];
    // A reader leaves only after the next has entered or has been refused: without a writer there always is one.
    let begun = 0;
    let served = false;
    const refusals = () =>
      readers.flatMap(({ events }) => events).filter(({ type }) => type === "contended").length;
    const stream = readers.map(async ({ redlock }) => {
      const lock = new ReadWriteLock(redlock, name, { wait: 60_000 });
      while (!served) {
        const hold = await lock.acquireRead();
        const mine = ++begun;
        const before = refusals();
        await until(() => served || begun > mine || refusals() > before, "the next reader or a writer");
        await hold.release();
      }
    });
    await until(() => begun > 4, "readers");
    const writing = await make(second, name).acquireWrite({ wait: 60_000 });
    served = true;
    expect(await writing.verify()).toBe(true);
    await writing.release();
    await Promise.all(stream);
  });

  test("a dead reader's hold expires while another goes on, and so does a dead writer's", async () => {
    const name = newResource("read-write");
    const [mine, theirs] = [make(first, name), make(second, name)];
    const key = keyOf("redlock", "read-write", name);
    const dead = await mine.acquireRead({ ttl: paced(120) });
    const alive = await mine.acquireRead();
    await allArrived(first.links);
    await until(() => dead.signal.aborted, "its end");
    expect(dead.signal.reason).toBeInstanceOf(LockLostError);
    // Its holder stops relying on it a little earlier.
    const standing = async () =>
      sumOf((await onEach(store, "ZCOUNT", key, String(Date.now()), "+inf")) as number[]);
    await until(async () => (await standing()) === count, "its end there");
    expect([await dead.release(), await alive.verify()]).toEqual([false, true]);
    expect(await theirs.tryAcquireWrite()).toBeNull();
    expect(await alive.extend()).toBeGreaterThan(0);
    await alive.release();
    const deadWriter = await theirs.acquireWrite({ ttl: paced(120), wait: 60_000 });
    const next = await mine.acquireRead({ wait: 60_000 });
    expect(deadWriter.remaining()).toBeLessThanOrEqual(0);
    expect([await deadWriter.release(), await next.verify()]).toEqual([false, true]);
  });

  test("every key expires", async () => {
    const name = newResource("read-write");
    const hold = await make(first, name).acquireRead({ ttl: 5_000 });
    await allArrived(first.links);
    for (const ms of (await onEach(store, "PTTL", keyOf("redlock", "read-write", name))) as number[]) {
      expect(ms).toBeGreaterThan(hold.remaining() - 100);
      expect(ms).toBeLessThanOrEqual(5_000);
    }
  });

  test("a hold that is gone is lost at its next extension, and is not created again", async () => {
    const name = newResource("read-write");
    const reading = await make(first, name).acquireRead();
    await allArrived(first.links);
    await onEach(store, "DEL", keyOf("redlock", "read-write", name));
    const writing = await make(second, name).acquireWrite({ wait: 0 });
    expect(await rejection(reading.extend())).toBeInstanceOf(LockLostError);
    expect([await reading.release(), await writing.verify()]).toEqual([false, true]);
  });

  test("repeated requests make one hold each, and release all of it", async () => {
    const name = newResource("read-write");
    const twice = visitor(store, { ttl: 20_000 });
    for (const link of twice.links) link.fate = () => "twice";
    const lock = make(twice, name);
    const reading = [await lock.acquireRead({ wait: 0 }), await lock.acquireRead({ wait: 0 })];
    await allArrived(twice.links);
    expect(await holds(name)).toBe(2 * count);
    expect(await reading[0]!.extend(5_000)).toBeGreaterThan(0);
    for (const hold of reading) {
      expect(await lock.tryAcquireWrite()).toBeNull();
      // The second execution is answered.
      expect(await hold.release()).toBe(true);
    }
    await allArrived(twice.links);
    expect(await holds(name)).toBe(0);
    for (const wait of [0, 60_000]) {
      const writing = await lock.acquireWrite({ wait });
      expect(await make(second, name).tryAcquireRead()).toBeNull();
      expect(await writing.release()).toBe(true);
    }
    await allArrived(twice.links);
    expect(await make(second, name).tryAcquireRead()).not.toBeNull();
  });

  test.runIf(count > 2)("a minority of endpoints may be down, or reply nonsense", async () => {
    const name = newResource("read-write");
    const lame = visitor(store, { ttl: 20_000 });
    lame.links.slice(quorum).forEach((link, index) => {
      if (index % 2 === 0) link.fate = () => "refused";
      else Object.assign(link, { send: async () => ["t", 1] });
    });
    const lock = make(lame, name);
    const reading = await lock.acquireRead({ wait: 0 });
    expect(await make(second, name).tryAcquireWrite()).toBeNull();
    expect(await reading.release()).toBe(true);
    const writing = await lock.acquireWrite({ wait: 60_000 });
    expect(await make(second, name).tryAcquireRead()).toBeNull();
    expect(await writing.release()).toBe(true);
    expect(await make(second, name).tryAcquireRead()).not.toBeNull();
  });

  test("costs the requests and commands that are documented", async () => {
    const name = newResource("read-write");
    const { redlock, links, events } = visitor(store);
    const lock = new ReadWriteLock(redlock, name);
    const cost = () => {
      const costs = store.endpoints.map((_, index) => store.cost(index));
      return [sumOf(costs.map(({ requests }) => requests)), sumOf(costs.map(({ billed }) => billed))];
    };
    const costOf = async (work: () => Promise<unknown>) => {
      const [requests, billed] = cost() as [number, number];
      await work();
      await allArrived(links);
      return cost().map((sum, index) => (sum - [requests, billed][index]!) / count);
    };
    await costOf(() => new ReadWriteLock(redlock, newResource("read-write")).acquireRead());
    let hold!: Hold;
    const taking = (work: () => Promise<Hold>) =>
      costOf(async () => {
        hold = await work();
      });
    expect(await taking(() => lock.acquireWrite())).toEqual([1, 7]);
    expect(await costOf(() => lock.tryAcquireRead())).toEqual([1, 6]);
    expect(await costOf(() => lock.tryAcquireWrite())).toEqual([1, 4]);
    expect(await costOf(() => hold.extend())).toEqual([1, 7]);
    expect(await costOf(() => hold.release())).toEqual([1, 6]);
    expect(await taking(() => lock.acquireRead())).toEqual([1, 8]);
    // A round, and the removal of the announcement, with a tombstone.
    expect(await costOf(() => rejection(lock.acquireWrite({ wait: 0.001 })))).toEqual([2, 8 + 7]);
    expect(await costOf(() => hold.extend())).toEqual([1, 7]);
    expect(await costOf(() => hold.release())).toEqual([1, 5]);
    // Events carry what was known at the time of the result: with one endpoint everything.
    if (count > 1) return;
    const costs = events.flatMap((event) =>
      "commands" in event && event.type !== "notAcquired" ? [[event.type, event.commands]] : [],
    );
    expect(costs.slice(1)).toEqual([
      ["acquired", 7],
      ["contended", 6],
      ["contended", 4],
      ["extended", 7],
      ["released", 6],
      ["acquired", 8],
      ["contended", 8],
      ["extended", 7],
      ["released", 5],
    ]);
  });

  test("`await using` releases it, and autoExtend keeps it until then", async () => {
    const name = newResource("read-write");
    const auto = visitor(store);
    const lock = make(auto, name, { ttl: paced(500), autoExtend: true });
    {
      await using hold = await lock.acquireRead();
      await until(() => auto.events.some(({ type }) => type === "extended"), "an extension");
      expect([hold.signal.aborted, await hold.verify()]).toEqual([false, true]);
    }
    expect(await holds(name)).toBe(0);
  });

  test("names, prefixes and locks are separate", async () => {
    const name = newResource("read-write");
    const names = [name, `${name}:0`, `{${name}}`];
    for (const other of names) expect(await make(first, other).tryAcquireWrite()).not.toBeNull();
    expect(await make(first, name, { prefix: "other" }).tryAcquireWrite()).not.toBeNull();
    expect(await first.redlock.tryAcquire(name)).not.toBeNull();
    for (const other of names) expect(await make(first, other).tryAcquireRead()).toBeNull();
  });
});
