import { describe, expect, test } from "vitest";
import type { MemoryEndpoint } from "../../../local/src/memory/index.ts";
import { type LockOptions, Redlock } from "../../../src/index.ts";
import {
  CountDownLatch,
  CyclicBarrier,
  FairLock,
  ReadWriteLock,
  ReentrantLock,
} from "../../../src/sync/index.ts";
import { channelOf } from "../../../src/wake-up/channel.ts";
import { pubSub } from "../../../src/wake-up/index.ts";
import { rejection } from "../../support/outcomes.ts";
import { reached, type VirtualWorld, virtualWorld, watch } from "../../support/virtual-client.ts";

// Synchronizers whose waiters are told by pub/sub, in virtual time. Without a message they ask after 1 500 ms, because random()
// is 0.5, and FairLocks and writers after 400 ms, as without messages. Each client is a process of its own.

function clientOf(world: VirtualWorld, options: LockOptions = {}, endpoints = reached(world)): Redlock {
  const backoff = { min: 400, max: 400 };
  const { runtime } = world;
  const given = { wait: 60_000, ttl: 60_000, timeout: 100, backoff, wakeUp: pubSub, ...options };
  return new Redlock({ ...given, endpoints, runtime });
}

/** A client, and how to let its process die: nothing that it sends arrives any more. */
function mortal(world: VirtualWorld, options: LockOptions): { redlock: Redlock; die: () => void } {
  let isDead = false;
  const endpoints = reached(world, (endpoint) => ({
    send: (command, signal) => (isDead ? new Promise(() => undefined) : endpoint.send(command, signal)),
  }));
  return {
    redlock: clientOf(world, options, endpoints),
    die: () => {
      isDead = true;
    },
  };
}

/** Begins calls one after the other, 30 ms apart, so that all wait by their streams. */
async function inTurn<Value>(world: VirtualWorld, calls: readonly (() => Promise<Value>)[]) {
  const watched = [];
  for (const call of calls) {
    watched.push(watch(call()));
    await world.runtime.advance(30);
  }
  return watched;
}

const settled = <Call extends { readonly settled: boolean }>(calls: readonly Call[]) =>
  calls.filter((call) => call.settled);

/** How many scripts an endpoint has executed. */
const scripts = ({ log }: MemoryEndpoint) =>
  log.filter(({ command }) => String(command[0]).startsWith("EVAL")).length;

const streams = ({ engine }: MemoryEndpoint, kind: string) =>
  (engine.execute(["PUBSUB", "NUMSUB", channelOf("redlock", kind, "a")]) as [string, number])[1];

describe("FairLock", () => {
  const enter = (world: VirtualWorld, signal?: AbortSignal) => () =>
    new FairLock(clientOf(world), "a").acquire({ signal });
  const enterAll = (world: VirtualWorld, count: number) =>
    inTurn(world, Array<() => ReturnType<FairLock["acquire"]>>(count).fill(enter(world)));

  test.each([1, 3])("%i endpoints: a release is told to who is next, who asks alone", async (count) => {
    const world = virtualWorld({ count });
    const calls = await enterAll(world, 5);
    for (const [index, call] of calls.entries()) {
      expect(settled(calls)).toEqual(calls.slice(0, index + 1));
      const before = scripts(world.endpoints[0]!);
      await call.value!.release();
      await world.runtime.advance(5);
      // The release, and one request of the next.
      expect(scripts(world.endpoints[0]!) - before).toBe(index < 4 ? 2 : 1);
    }
    expect(streams(world.endpoints[0]!, "fair")).toBe(0);
  });

  test("who gives up while the lock is free calls the next", async () => {
    const world = virtualWorld();
    const held = await enter(world)();
    const controller = new AbortController();
    const calls = await inTurn(world, [enter(world, controller.signal), enter(world)]);
    for (const { faults } of world.endpoints) faults.add({ fault: "drop-message", times: 1 });
    await held.release();
    await world.runtime.advance(5);
    expect(settled(calls)).toEqual([]);
    controller.abort(new Error("enough"));
    await world.runtime.advance(5);
    expect(calls[1]!.value).toBeDefined();
  });
});

type Acquire = (redlock: Redlock) => Promise<{ release(): Promise<boolean | undefined> }>;

const acquireWrite: Acquire = (redlock) => new ReadWriteLock(redlock, "a").acquireWrite();

test.each<[string, Acquire, Acquire?]>([
  ["plain lock", (redlock) => redlock.acquire("a")],
  ["FairLock", (redlock) => new FairLock(redlock, "a").acquire()],
  ["ReadWriteLock for writing", acquireWrite],
  ["ReadWriteLock for reading", (redlock) => new ReadWriteLock(redlock, "a").acquireRead(), acquireWrite],
  ["ReentrantLock", (redlock) => new ReentrantLock(redlock, "a").acquire()],
])(
  "%s: a holder that has not the endpoint at which all listen tells them, too",
  async (_, acquire, next = acquire) => {
    const world = virtualWorld();
    let isDown = true;
    const without = reached(world, (endpoint, index) => ({
      send: (command, signal) =>
        isDown && index === 0 ? Promise.reject(new Error("refused")) : endpoint.send(command, signal),
    }));
    const held = await acquire(clientOf(world, {}, without));
    isDown = false;
    const [call] = await inTurn(world, [() => next(clientOf(world))]);
    await world.runtime.advance(400);
    expect(call!.settled).toBe(false);
    await held.release();
    // It may have asked before the release had reached the other endpoints. Without a message it would wait for 1 500 ms.
    await world.runtime.advance(450);
    expect(call!.value).toBeDefined();
  },
);

describe("ReadWriteLock", () => {
  const read = (world: VirtualWorld) => () => new ReadWriteLock(clientOf(world), "a").acquireRead();
  const write = (world: VirtualWorld, signal?: AbortSignal) => () =>
    new ReadWriteLock(clientOf(world), "a").acquireWrite({ signal });

  test("a writer's release lets in all readers; only the last reader's release calls a writer", async () => {
    const world = virtualWorld();
    const writer = await write(world)();
    const readers = await inTurn(world, Array(6).fill(read(world)) as ReturnType<typeof read>[]);
    expect(settled(readers)).toEqual([]);
    await writer.release();
    await world.runtime.advance(5);
    expect(settled(readers)).toEqual(readers);
    const [next] = await inTurn(world, [write(world)]);
    for (const reader of readers) {
      expect(next!.settled).toBe(false);
      const before = scripts(world.endpoints[0]!);
      await reader.value!.release();
      await world.runtime.advance(20);
      if (reader !== readers.at(-1)) expect(scripts(world.endpoints[0]!) - before).toBe(1);
    }
    expect(next!.value).toBeDefined();
    expect(streams(world.endpoints[0]!, "read-write")).toBe(0);
  });

  test.each([
    ["readers", read],
    ["a writer", write],
  ] as const)("a writer that did not wait calls %s as well", async (_, waiting) => {
    const world = virtualWorld();
    const writer = await new ReadWriteLock(clientOf(world), "a").tryAcquireWrite();
    const [waiter] = await inTurn<unknown>(world, [waiting(world)]);
    await writer!.release();
    await world.runtime.advance(20);
    expect(waiter!.settled).toBe(true);
  });

  test("waiting writers go before waiting readers", async () => {
    const world = virtualWorld();
    const held = await write(world)();
    const [reader, writer] = await inTurn<unknown>(world, [read(world), write(world)]);
    await held.release();
    await world.runtime.advance(20);
    expect([reader!.settled, writer!.settled]).toEqual([false, true]);
  });

  test("a writer that gives up lets in the readers that waited for it", async () => {
    const world = virtualWorld();
    await read(world)();
    const controller = new AbortController();
    const [, reader] = await inTurn<unknown>(world, [write(world, controller.signal), read(world)]);
    expect(reader!.settled).toBe(false);
    controller.abort(new Error("enough"));
    await world.runtime.advance(5);
    expect(reader!.value).toBeDefined();
  });

  test("a writer keeps readers out for as long as it waits, and not much longer than it lives", async () => {
    const world = virtualWorld();
    const held = await read(world)();
    const { redlock, die } = mortal(world, { wait: 600_000 });
    await inTurn(world, [() => new ReadWriteLock(redlock, "a").acquireWrite()]);
    await world.runtime.advance(30_000);
    await held.extend();
    const reader = watch(new ReadWriteLock(clientOf(world), "a").acquireRead());
    await world.runtime.advance(20_000);
    expect(reader.settled).toBe(false);
    die();
    await world.runtime.advance(9_000);
    expect(reader.value).toBeDefined();
  });
});

describe.each([1, 3])("%i endpoints", (count) => {
  test("CountDownLatch: all that wait are told that it is open", async () => {
    const world = virtualWorld({ count });
    const latch = () => new CountDownLatch(clientOf(world, { ttl: undefined }), "a", { count: 3 });
    const calls = await inTurn(world, Array(5).fill(() => latch().wait()) as (() => Promise<void>)[]);
    const asked = async (arrival: string) => {
      const before = scripts(world.endpoints[0]!);
      await latch().arrive(arrival);
      await world.runtime.advance(450);
      return scripts(world.endpoints[0]!) - before;
    };
    // The first one makes the generation, of which all are told, and look again after a poll; of the next one nobody is told.
    expect([await asked("one"), await asked("two")]).toEqual([11, 1]);
    expect(settled(calls)).toEqual([]);
    await latch().arrive("three");
    await world.runtime.advance(5);
    expect(settled(calls)).toEqual(calls);
    expect(streams(world.endpoints[0]!, "latch")).toBe(0);
  });

  test("CyclicBarrier: all that wait are told of the last arrival, however short the ttl", async () => {
    const world = virtualWorld({ count });
    const arrive = (id: string) => () =>
      new CyclicBarrier(clientOf(world), "a", { parties: 3, ttl: 2_000 }).arriveAndWait(id);
    const calls = await inTurn(world, [arrive("one"), arrive("two")]);
    await world.runtime.advance(10_000);
    expect(settled(calls)).toEqual([]);
    const last = watch(arrive("three")());
    await world.runtime.advance(10);
    expect([...calls, last].map(({ value }) => value)).toEqual(Array(3).fill(last.value));
    expect(last.value).toBeGreaterThan(0);
  });
});

test("a call that gives up closes its stream, and the arrival needs none", async () => {
  const world = virtualWorld();
  const latch = new CountDownLatch(clientOf(world, { ttl: undefined }), "a", { count: 2 });
  const waiting = rejection(latch.wait({ wait: 400 }));
  await world.runtime.advance(30);
  expect(streams(world.endpoints[0]!, "latch")).toBe(1);
  await world.runtime.advance(400);
  expect(await waiting).toMatchObject({ code: "ARRIVALS_MISSING" });
  expect(streams(world.endpoints[0]!, "latch")).toBe(0);
});
