import { describe, expect, test } from "vitest";
import type { MemoryEndpoint } from "../../../local/src/memory/index.ts";
import type { LockOptions } from "../../../src/index.ts";
import {
  CountDownLatch,
  CyclicBarrier,
  FairLock,
  Mailbox,
  type MailboxHandler,
  ReadWriteLock,
} from "../../../src/sync/index.ts";
import { channelOf } from "../../../src/wake-up/channel.ts";
import { type VirtualWorld, virtualWorld, watch, wokenClient } from "../../support/virtual-client.ts";
import { holders } from "./holders.ts";

// Synchronizers whose waiters are told by pub/sub, in virtual time. Without a message they ask after 1 500 ms, because random()
// is 0.5, and FairLocks and writers after 400 ms, as without messages. Each client is a process of its own.

const clientOf = (world: VirtualWorld, options: LockOptions = {}) =>
  wokenClient(world, { ttl: 60_000, backoff: { min: 400, max: 400 }, ...options });

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
});

test("Mailbox: those that stand by are told when a message is handled, and when the turn ends", async () => {
  const world = virtualWorld();
  const finish: (() => void)[] = [];
  const slowly: MailboxHandler<string> = async (messages) => {
    for await (const _ of messages) await new Promise<void>((resolve) => finish.push(resolve));
  };
  const post = (id: string) => () =>
    new Mailbox<string>(clientOf(world), "a").post({ id, value: id }, slowly, { standBy: true });
  const calls = await inTurn(world, ["a", "b", "c"].map(post));
  // They have asked, and pause for 1 500 ms.
  await world.runtime.advance(300);
  for (const handled of [[], [calls[1]], calls]) {
    finish.at(-1)!();
    await world.runtime.advance(20);
    expect(settled(calls)).toEqual(handled);
  }
  expect(calls.map(({ value }) => value?.status)).toEqual(["handled", "handled", "handled"]);
});

test.each(holders)("$title: a release wakes up who waits", async ({ acquire, another }) => {
  const world = virtualWorld();
  const held = await acquire(clientOf(world), "a");
  const [waiting] = await inTurn(world, [() => another(clientOf(world), "a")]);
  await held.release();
  await world.runtime.advance(5);
  expect(waiting!.value).toBeDefined();
});

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
