import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Command } from "../../../src/endpoints/endpoint.ts";
import { LockLostError, QuorumError } from "../../../src/index.ts";
import { upstashFlag } from "../../../src/redis/script.ts";
import {
  CountDownLatch,
  CyclicBarrier,
  debounce,
  FairLock,
  forceRelease,
  type Hold,
  LimitMismatchError,
  once,
  ReadWriteLock,
  ReentrantLock,
  Semaphore,
  type SynchronizerKind,
} from "../../../src/sync/index.ts";
import { freeScript } from "../../../src/sync/internal/force-release.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { isSettled, rejection } from "../../support/outcomes.ts";
import { allArrived, type OpenStore } from "../../support/stores.ts";
import { until } from "../../support/until.ts";
import { stores, type Visitor, visitor } from "./stand.ts";

test("freeScript has the hash of the text that each dialect sends", () => {
  const sha1 = (text: string) => createHash("sha1").update(text).digest("hex");
  const { source } = freeScript;
  expect(freeScript.sha).toEqual({ redis: sha1(source), upstash: sha1(upstashFlag + source) });
});

const kinds: readonly SynchronizerKind[] = [
  "Semaphore",
  "ReadWriteLock",
  "FairLock",
  "ReentrantLock",
  "CountDownLatch",
  "CyclicBarrier",
  "once",
  "debounce",
];

const holders: readonly [SynchronizerKind, (visitor: Visitor, name: string) => Promise<Hold | null>][] = [
  ["Semaphore", ({ redlock }, name) => new Semaphore(redlock, name, { limit: 1 }).tryAcquire()],
  ["ReadWriteLock", ({ redlock }, name) => new ReadWriteLock(redlock, name).tryAcquireWrite()],
  ["FairLock", ({ redlock }, name) => new FairLock(redlock, name).tryAcquire()],
  ["ReentrantLock", ({ redlock }, name) => new ReentrantLock(redlock, name).tryAcquire()],
];

describe.each(stores([1, 3], [1, 3]))("forceRelease on $title", ({ open, count }) => {
  let store: OpenStore;
  let first: Visitor;
  let second: Visitor;

  beforeAll(async () => {
    store = await open();
    first = visitor(store, { ttl: 20_000 });
    second = visitor(store, { ttl: 20_000 });
  });
  afterAll(() => store.close());

  /** Executes again, as late requests, what a visitor has sent about a name to every endpoint. */
  async function repeat({ links }: Visitor, name: string, operation = ""): Promise<void> {
    const late = (command: Command) =>
      command.some((word) => String(word).includes(name)) && (!operation || command.includes(operation));
    for (const [index, { sent }] of links.entries()) {
      for (const command of sent.filter(late)) {
        await store.endpoints[index]!.send(command, new AbortController().signal).catch(() => undefined);
      }
    }
  }

  test.each(kinds)("%s that is not in use: there is nothing to free", async (kind) => {
    expect(await forceRelease(first.redlock, kind, newResource("free"))).toBe(false);
  });

  test.each(kinds)("%s: too few endpoints is a QuorumError", async (kind) => {
    const cut = visitor(store);
    for (const link of cut.links.slice(Math.floor(count / 2))) link.fate = () => "refused";
    expect(await rejection(forceRelease(cut.redlock, kind, "n"))).toBeInstanceOf(QuorumError);
  });

  test.each(holders)(
    "%s: another can acquire it, and its holder learns of the loss",
    async (kind, acquire) => {
      const name = newResource("free{1}");
      const hold = (await acquire(first, name))!;
      await allArrived(first.links);
      expect(await acquire(second, name)).toBeNull();
      expect(await forceRelease(second.redlock, kind, name)).toBe(true);
      await allArrived(second.links);
      const next = (await acquire(second, name))!;
      await allArrived(second.links);
      expect(await rejection(hold.extend())).toBeInstanceOf(LockLostError);
      expect([await hold.verify(), await hold.release(), await next.verify()]).toEqual([false, false, true]);
      expect(await next.release()).toBe(true);
    },
  );

  test("FairLock and ReadWriteLock: waiters are served", async () => {
    const name = newResource("free");
    const options = { wait: 60_000 };
    const fair = new FairLock(first.redlock, name, options);
    const readWrite = new ReadWriteLock(first.redlock, name, options);
    await Promise.all([fair.acquire(), readWrite.acquireRead()]);
    const waiting = visitor(store, { ttl: 20_000 });
    const turn = new FairLock(waiting.redlock, name, options).acquire();
    const writing = new ReadWriteLock(waiting.redlock, name, options).acquireWrite();
    await until(() => waiting.events.filter(({ type }) => type === "contended").length > 1, "contention");
    expect(await forceRelease(second.redlock, "FairLock", name)).toBe(true);
    expect(await forceRelease(second.redlock, "ReadWriteLock", name)).toBe(true);
    expect(await (await turn).verify()).toBe(true);
    expect(await (await writing).verify()).toBe(true);
  });

  test("Semaphore: frees all permits of any limit, and the limit", async () => {
    const name = newResource("free");
    const wrong = new Semaphore(first.redlock, name, { limit: 3 });
    const right = new Semaphore(second.redlock, name, { limit: 1 });
    const permits = [await wrong.acquire(), await wrong.acquire(), await wrong.acquire()];
    expect(await rejection(right.acquire())).toBeInstanceOf(LimitMismatchError);
    expect(await forceRelease(second.redlock, "Semaphore", name)).toBe(true);
    const permit = await right.acquire();
    for (const old of permits) expect(await rejection(old.extend())).toBeInstanceOf(LockLostError);
    expect(await permit.verify()).toBe(true);
    expect(await rejection(wrong.tryAcquire())).toBeInstanceOf(LimitMismatchError);
  });

  test("CountDownLatch: frees one with a wrong count, and no late request counts for the next", async () => {
    const name = newResource("free");
    const wrong = new CountDownLatch(first.redlock, name, { count: 5 });
    const right = new CountDownLatch(second.redlock, name, { count: 2 });
    await wrong.arrive("a");
    expect(await rejection(right.arrive("a"))).toBeInstanceOf(LimitMismatchError);
    expect(await forceRelease(second.redlock, "CountDownLatch", name)).toBe(true);
    await allArrived([...first.links, ...second.links]);
    expect(await right.inspect({ wait: 0 })).toEqual({ open: false, arrived: 0, remaining: 2 });
    await repeat(first, name);
    expect(await forceRelease(second.redlock, "CountDownLatch", name)).toBe(false);
    expect(await right.arrive("b")).toEqual({ open: false, arrived: 1, remaining: 1 });
    await repeat(first, name);
    expect(await right.inspect()).toEqual({ open: false, arrived: 1, remaining: 1 });
    expect(await right.arrive("a")).toMatchObject({ open: true });
    await right.wait({ wait: 0 });
  });

  test("CountDownLatch: closes an open one for good, and waiting calls go on waiting", async () => {
    const name = newResource("free");
    const latch = new CountDownLatch(first.redlock, name, { count: 2 });
    await latch.arrive("a");
    expect(await latch.arrive("b")).toMatchObject({ open: true });
    await allArrived(first.links);
    const sent = first.links[0]!.sent.length;
    expect(await forceRelease(second.redlock, "CountDownLatch", name)).toBe(true);
    const waiting = new CountDownLatch(second.redlock, name, { count: 2 }).wait({ wait: 60_000 });
    waiting.catch(() => undefined);
    await repeat(first, name);
    expect(first.links[0]!.sent.length).toBe(sent);
    expect(await latch.arrive("a")).toEqual({ open: false, arrived: 1, remaining: 1 });
    expect(await isSettled(waiting)).toBe(false);
    // A second reset, while a call waits.
    expect(await forceRelease(second.redlock, "CountDownLatch", name)).toBe(true);
    expect(await latch.arrive("c")).toEqual({ open: false, arrived: 1, remaining: 1 });
    expect(await latch.arrive("d")).toMatchObject({ open: true });
    await waiting;
  });

  test("CyclicBarrier: waiting parties arrive again, late requests do not count", async () => {
    const name = newResource("free");
    const party = (parties: number) => new CyclicBarrier(visitor(store).redlock, name, { parties });
    const late = visitor(store);
    const gone = new CyclicBarrier(late.redlock, name, { parties: 2 });
    // Has arrived, and has given up waiting.
    await rejection(gone.arriveAndWait("gone", { wait: 0 }));
    await allArrived(late.links);
    expect(await rejection(party(3).arriveAndWait("x", { wait: 0 }))).toBeInstanceOf(LimitMismatchError);
    expect(await forceRelease(second.redlock, "CyclicBarrier", name)).toBe(true);
    const [a, b, c] = ["a", "b", "c"].map((id) => {
      const barrier = party(3);
      return () => barrier.arriveAndWait(id, { wait: 60_000 });
    }) as [() => Promise<number>, () => Promise<number>, () => Promise<number>];
    const one = a();
    const two = b();
    await repeat(late, name);
    expect([await isSettled(one), await isSettled(two)]).toEqual([false, false]);
    expect(await forceRelease(second.redlock, "CyclicBarrier", name)).toBe(true);
    const generations = await Promise.all([one, two, c()]);
    expect(new Set(generations).size).toBe(1);
    await repeat(late, name);
    const following = await Promise.all([a(), b(), c()]);
    expect(following).toEqual(generations.map((number) => number + 1));
  });

  test("once: it runs again, with a larger fence", async () => {
    const name = newResource("free");
    const run = () => once(first.redlock, name, { every: 60_000 }, ({ fence }) => fence);
    const before = await run();
    await allArrived(first.links);
    expect((await run()).ran).toBe(false);
    expect(await forceRelease(second.redlock, "once", name)).toBe(true);
    expect(await forceRelease(second.redlock, "once", name)).toBe(false);
    // A late confirmation.
    await repeat(first, name, "extend");
    const after = await run();
    expect(before.ran && after.ran && after.value > before.value).toBe(true);
  });

  test("debounce: the pending call does not run, and the next one does", async () => {
    const name = newResource("free");
    const pending = visitor(store);
    const options = { window: 1_500, ttl: 60_000 };
    const call = debounce(pending.redlock, name, options, () => expect.unreachable("it was freed"));
    await until(() => pending.links.every(({ sent, pending: left }) => sent.length > 0 && left === 0));
    expect(await forceRelease(second.redlock, "debounce", name)).toBe(true);
    expect(await forceRelease(second.redlock, "debounce", name)).toBe(false);
    expect(await call).toEqual({ ran: false });
    expect(await debounce(second.redlock, name, { ...options, window: 10 }, () => 1)).toEqual({
      ran: true,
      value: 1,
    });
  });
});
