import { describe, expect, test } from "vitest";
import { LockHeldError, LockLostError, QuorumError } from "../../../src/index.ts";
import { type Hold, ReadWriteLock, type SyncOptions } from "../../../src/sync/index.ts";
import { memberScript } from "../../../src/sync/internal/members.ts";
import { rejection } from "../../support/outcomes.ts";
import { delays, type VirtualClient, watch } from "../../support/virtual-client.ts";
import { type SyncWorld, sentBy, syncWorld } from "../../support/virtual-sync.ts";

// Readers and writers in virtual time: who holds it, how long a waiting writer is announced, and what stays.

const newWorld = (options: Parameters<typeof syncWorld>[1] = {}) => syncWorld([memberScript], options);
const lockOf = ({ redlock }: VirtualClient, options: SyncOptions = {}) =>
  new ReadWriteLock(redlock, "r", { ttl: 20_000, ...options });

const holdsIn = ({ each }: Pick<SyncWorld, "each">) => each("ZCARD", "read-write", "r");
const announcedIn = ({ each }: Pick<SyncWorld, "each">) => each("ZCARD", "writers", "r");
const nowhere = [0, 0, 0];
/** ms until the tombstones of an endpoint expire. */
const voidsIn = ({ ttls }: SyncWorld, index = 0) =>
  Object.entries(ttls(index)).flatMap(([key, ttl]) => (key.startsWith("redlock:void:{r}:") ? ttl : []));

/** A world with a reader, and a writer that has been refused once. */
async function withWaitingWriter(options: SyncOptions = {}, signal?: AbortSignal) {
  const world = newWorld();
  const reading = await lockOf(world.client()).acquireRead();
  const writer = world.client();
  const writing = watch(lockOf(writer, options).acquireWrite({ signal }));
  await world.runtime.advance(0);
  return { ...world, reading, writer, writing };
}

describe("the lock", () => {
  test("is held by readers together, or by a writer alone", async () => {
    const world = newWorld();
    const [mine, theirs] = [lockOf(world.client()), lockOf(world.client())];
    const readers = [await mine.acquireRead(), await theirs.acquireRead()];
    expect(holdsIn(world)).toEqual([2, 2, 2]);
    for (const hold of readers) {
      expect(await theirs.tryAcquireWrite()).toBe(null);
      expect([hold.ttl, hold.remaining(), await hold.verify()]).toEqual([20_000, 19_798, true]);
      expect(await hold.release()).toBe(true);
      expect([await hold.release(), await hold.verify(), hold.signal.aborted]).toEqual([false, false, false]);
    }
    const writing = await theirs.acquireWrite();
    expect([await mine.tryAcquireRead(), await mine.tryAcquireWrite()]).toEqual([null, null]);
    expect([await theirs.tryAcquireRead(), await theirs.tryAcquireWrite()]).toEqual([null, null]);
    expect(await writing.extend(30_000)).toBe(30_000 - 302);
    expect(await writing.release()).toBe(true);
    expect([holdsIn(world), announcedIn(world)]).toEqual([nowhere, nowhere]);
    expect(await mine.tryAcquireRead()).not.toBe(null);
  });

  test("is free for a writer when the last reader's ttl is over, although another's is longer gone", async () => {
    const world = newWorld();
    const lock = lockOf(world.client());
    const dead = await lock.acquireRead({ ttl: 203 });
    await lock.acquireRead({ ttl: 407 });
    const writing = watch(lockOf(world.client()).acquireWrite());
    await world.runtime.advance(203);
    expect([await dead.verify(), await dead.release()]).toEqual([false, false]);
    await world.runtime.advance(203);
    expect(writing.settled).toBe(false);
    await world.runtime.advance(1);
    expect(await writing.value!.verify()).toBe(true);
  });

  test("is lost where it is gone, and not created again", async () => {
    const world = newWorld();
    const reading = await lockOf(world.client()).acquireRead();
    world.each("DEL", "read-write", "r");
    const writing = await lockOf(world.client()).acquireWrite();
    expect(await rejection(reading.extend())).toBeInstanceOf(LockLostError);
    expect([await reading.release(), await writing.verify()]).toEqual([false, true]);
    expect(holdsIn(world)).toEqual([1, 1, 1]);
  });

  test("needs a quorum: a minority that refuses, or is down, changes nothing", async () => {
    const world = newWorld();
    const lock = lockOf(world.client());
    const reading = await lock.acquireRead();
    world.at([0, 1], "DEL", "read-write", "r");
    const lame = world.client();
    lame.links[0]!.fate = () => "refused";
    expect(await rejection(lockOf(lame).tryAcquireWrite())).toBeInstanceOf(QuorumError);
    lame.links[0]!.fate = () => "delivered";
    expect(await lockOf(lame).tryAcquireWrite()).not.toBe(null);
    expect(await reading.verify()).toBe(false);
  });
});

describe("a waiting writer", () => {
  test("keeps new readers out, lets present ones extend, and is served when they are gone", async () => {
    const { runtime, reading, writing, client } = await withWaitingWriter();
    const refused = (await rejection(lockOf(client(), { wait: 0 }).acquireRead())) as LockHeldError;
    // So long lives the announcement if its writer dies.
    expect(refused.retryAfter).toBe(500);
    expect(await reading.extend(30_000)).toBe(30_000 - 302);
    const next = watch(lockOf(client()).acquireRead());
    await runtime.advance(5);
    await reading.release();
    expect([writing.settled, next.settled]).toEqual([false, false]);
    await runtime.advance(5);
    expect([await writing.value!.verify(), next.settled]).toEqual([true, false]);
    await writing.value!.release();
    await runtime.advance(10);
    expect(await next.value!.verify()).toBe(true);
  });

  test.each<[string, SyncOptions, number]>([
    ["for half a second at least", { backoff: () => 100, timeout: 50 }, 500],
    ["for one and a half pauses and two timeouts", { backoff: () => 400, timeout: 100 }, 800],
    ["with the pause that follows", { backoff: (attempt) => 400 * attempt, timeout: 100.2 }, 801],
    ["no longer than a timer can run", { backoff: () => 2_000_000_000, timeout: 100 }, 2_147_483_647],
  ])("is announced %s", async (_, options, expiry) => {
    const { each } = await withWaitingWriter(options);
    expect(each("PTTL", "writers", "r")).toEqual([expiry, expiry, expiry]);
  });

  test("sends its next request after the pause that its announcement includes", async () => {
    const { runtime, writer, each } = await withWaitingWriter({ backoff: (attempt) => 400 * attempt });
    await runtime.advance(399);
    expect(sentBy(writer)).toEqual([1, 1, 1]);
    await runtime.advance(1);
    expect(sentBy(writer)).toEqual([2, 2, 2]);
    // 1.5 × 800 + 2 × 100.
    expect(each("PTTL", "writers", "r")).toEqual([1_400, 1_400, 1_400]);
    await runtime.advance(799);
    expect(sentBy(writer)).toEqual([2, 2, 2]);
    await runtime.advance(1);
    expect(sentBy(writer)).toEqual([3, 3, 3]);
  });

  test("is announced where it was refused at first, everywhere from its second round on", async () => {
    const world = newWorld();
    await lockOf(world.client()).acquireRead();
    world.at([0], "DEL", "read-write", "r");
    watch(lockOf(world.client()).acquireWrite());
    await world.runtime.advance(0);
    expect(announcedIn(world)).toEqual([0, 1, 1]);
    await world.runtime.advance(15);
    // Its partial grant was rolled back, its announcement was not.
    expect([announcedIn(world), holdsIn(world)]).toEqual([
      [1, 1, 1],
      [0, 1, 1],
    ]);
  });

  test("is announced until its release where it was granted in a later round", async () => {
    const world = await withWaitingWriter();
    await world.reading.release();
    await world.runtime.advance(10);
    expect([holdsIn(world), announcedIn(world)]).toEqual([
      [1, 1, 1],
      [1, 1, 1],
    ]);
    expect(await world.writing.value!.release()).toBe(true);
    expect(announcedIn(world)).toEqual(nowhere);
    // Only the tombstones of the reader and of the writer, each for two timeouts after its release.
    expect(voidsIn(world)).toEqual([190, 200]);
  });

  test("that died keeps readers out until its announcement expires", async () => {
    const { runtime, writer, client } = await withWaitingWriter();
    for (const link of writer.links) link.fate = () => "lost";
    const next = watch(lockOf(client()).acquireRead());
    await runtime.advance(499);
    expect(next.settled).toBe(false);
    await runtime.advance(1);
    expect(next.value!.remaining()).toBe(19_798);
  });

  test("that does not wait is not announced, and has nothing to remove", async () => {
    const world = newWorld();
    await lockOf(world.client()).acquireRead();
    const own = world.client();
    expect(await lockOf(own).tryAcquireWrite()).toBe(null);
    expect([announcedIn(world), sentBy(own)]).toEqual([nowhere, [1, 1, 1]]);
    expect(await lockOf(world.client()).tryAcquireRead()).not.toBe(null);
  });
});

describe("a writer that gives up", () => {
  test("removes its announcement, for good", async () => {
    const world = await withWaitingWriter({ wait: 25 });
    await world.runtime.advance(25);
    expect(world.writing.error).toBeInstanceOf(LockHeldError);
    expect(world.writing.error).toMatchObject({ resources: ["r"], waited: 25, retryAfter: 19_975 });
    expect(announcedIn(world)).toEqual(nowhere);
    expect(voidsIn(world)).toEqual([60_000]);
    expect(await lockOf(world.client()).tryAcquireRead()).not.toBe(null);
  });

  test("waits for the removal, because nothing else keeps it alive", async () => {
    const { runtime, writer, writing, ...world } = await withWaitingWriter({ wait: 5 });
    const { slow } = delays(runtime);
    writer.links[2]!.fate = (command) => (command.includes("release") ? slow(70) : "delivered");
    await runtime.advance(74);
    expect(writing.settled).toBe(false);
    await runtime.advance(1);
    expect(writing.error).toBeInstanceOf(LockHeldError);
    expect(announcedIn(world)).toEqual(nowhere);
  });

  test("does not wait for it where the platform keeps it alive", async () => {
    const background: Promise<unknown>[] = [];
    const { runtime, writer, writing } = await withWaitingWriter({
      wait: 5,
      waitUntil: (work) => background.push(work),
    });
    const { slow } = delays(runtime);
    writer.links[2]!.fate = (command) => (command.includes("release") ? slow(70) : "delivered");
    await runtime.advance(5);
    expect(writing.error).toBeInstanceOf(LockHeldError);
    const work = watch(Promise.all(background));
    await runtime.advance(69);
    expect(work.settled).toBe(false);
    await runtime.advance(1);
    expect(work.settled).toBe(true);
  });

  test("does not wait for it after an abort, and removes it all the same", async () => {
    const caller = new AbortController();
    const { runtime, writer, writing, ...world } = await withWaitingWriter({}, caller.signal);
    const { late } = delays(runtime);
    writer.links[2]!.fate = (command) => (command.includes("release") ? late(70) : "delivered");
    caller.abort(new Error("enough"));
    await runtime.advance(0);
    expect(writing.error).toBe(caller.signal.reason);
    expect(announcedIn(world)).toEqual([0, 0, 1]);
    await runtime.advance(70);
    expect(announcedIn(world)).toEqual(nowhere);
  });

  test("before its first request sends none", async () => {
    const own = newWorld().client();
    const error = await rejection(lockOf(own).acquireWrite({ signal: AbortSignal.abort("before") }));
    expect([error, sentBy(own)]).toEqual(["before", nowhere]);
  });

  test("is not announced again by its own late request, nor granted", async () => {
    const world = newWorld();
    const { late } = delays(world.runtime);
    const reading = await lockOf(world.client()).acquireRead();
    const own = world.client({ timeout: 100 });
    own.links[0]!.fate = () => (own.links[0]!.sent.length === 1 ? late(1_000) : "delivered");
    const writing = watch(lockOf(own).acquireWrite({ wait: 20 }));
    await world.runtime.advance(500);
    expect(writing.error).toBeInstanceOf(LockHeldError);
    await reading.release();
    await world.runtime.advance(500);
    expect([holdsIn(world), announcedIn(world)]).toEqual([nowhere, nowhere]);
  });

  test("on an outage leaves neither a hold nor an announcement", async () => {
    for (const wait of [0, 5]) {
      const world = newWorld();
      const own = world.client();
      for (const link of own.links) {
        link.fate = (command) => (command.includes("acquire") ? "reply lost" : "delivered");
      }
      const writing = watch(lockOf(own).acquireWrite({ wait }));
      await world.runtime.advance(200);
      expect(writing.error).toBeInstanceOf(QuorumError);
      expect([holdsIn(world), announcedIn(world)]).toEqual([nowhere, nowhere]);
    }
  });
});

describe("a deadline that has passed", () => {
  test.each(["acquireRead", "acquireWrite"] as const)(
    "is refused by %s, and nothing is sent",
    async (how) => {
      const { runtime, client } = newWorld();
      const own = client();
      const error = await rejection(lockOf(own)[how]({ deadline: runtime.now() }));
      await runtime.advance(1_000);
      expect([error instanceof RangeError, sentBy(own)]).toEqual([true, nowhere]);
    },
  );

  test("otherwise limits the hold and the waiting", async () => {
    const { runtime, client } = newWorld();
    const hold = await lockOf(client()).acquireWrite({ deadline: runtime.now() + 5_000 });
    expect(hold.remaining()).toBe(5_000);
    const call = watch(lockOf(client()).acquireWrite({ deadline: runtime.now() + 20 }));
    await runtime.advance(20);
    expect(call.error).toBeInstanceOf(LockHeldError);
  });
});

describe("a request that is executed twice", () => {
  test("makes one hold, and releases all of it", async () => {
    const world = newWorld();
    const twice = world.client();
    for (const link of twice.links) link.fate = () => "twice";
    const lock = lockOf(twice);
    const readers = [await lock.acquireRead(), await lock.acquireRead()];
    expect(holdsIn(world)).toEqual([2, 2, 2]);
    for (const hold of readers) expect(await hold.release()).toBe(true);
    for (const wait of [0, 60_000]) {
      const writing = await lock.acquireWrite({ wait });
      expect(holdsIn(world)).toEqual([1, 1, 1]);
      expect(await writing.release()).toBe(true);
    }
    expect([holdsIn(world), announcedIn(world)]).toEqual([nowhere, nowhere]);
  });

  test("is not refused for a writer that was announced in between", async () => {
    const world = newWorld();
    const { late } = delays(world.runtime);
    await lockOf(world.client()).acquireRead();
    const own = world.client();
    for (const [index, link] of own.links.entries()) {
      link.fate = () => {
        void world.endpoints[index]!.send(link.sent[0]!, new AbortController().signal);
        return late(50);
      };
    }
    const reading = watch(lockOf(own).acquireRead({ wait: 0 }));
    await world.runtime.advance(20);
    watch(lockOf(world.client()).acquireWrite());
    await world.runtime.advance(30);
    expect(reading.value!.remaining()).toBe(19_798 - 50);
    expect(holdsIn(world)).toEqual([2, 2, 2]);
  });

  test("leaves a tombstone of the announcement where it may still be under way at the release", async () => {
    const world = await withWaitingWriter();
    const { runtime, writer, reading, writing } = world;
    const { slow } = delays(runtime);
    writer.links[2]!.fate = () => slow(60);
    await reading.release();
    await runtime.advance(10);
    writer.links[2]!.fate = () => "delivered";
    const released = watch(writing.value!.release());
    await runtime.advance(60);
    expect(released.value).toBe(true);
    expect([holdsIn(world), announcedIn(world)]).toEqual([nowhere, nowhere]);
    // Of the reader, of the announcement, and of the hold, whose answer has arrived by the second of two releases.
    expect(voidsIn(world, 2).sort((a, b) => a - b)).toEqual([130, 200, 59_965]);
  });
});

test("requests cost what the endpoint bills, and what is documented", async () => {
  const { runtime, client, endpoints } = newWorld({ count: 1, dialect: "upstash" });
  const own = client();
  const lock = lockOf(own);
  const reading = await lock.acquireRead();
  await lock.tryAcquireWrite();
  const writing = watch(lock.acquireWrite({ wait: 15 }));
  await runtime.advance(1);
  await lock.tryAcquireRead();
  await runtime.advance(14);
  expect(writing.error).toBeInstanceOf(LockHeldError);
  await reading.extend();
  await reading.release();
  const second = watch(lock.acquireRead());
  await runtime.advance(0);
  const third = watch(lock.acquireWrite({ backoff: () => 20 }));
  await runtime.advance(5);
  await second.value!.release();
  await runtime.advance(15);
  await third.value!.extend();
  await third.value!.release();
  const reported = own.events.flatMap((event) => ("commands" in event ? [[event.type, event.commands]] : []));
  expect(reported).toEqual([
    ["acquired", 8],
    ["contended", 4],
    ["notAcquired", 4],
    ["contended", 8],
    ["contended", 6],
    ["notAcquired", 6],
    ["contended", 16],
    ["contended", 24],
    ["notAcquired", 24],
    ["extended", 7],
    ["released", 5],
    ["acquired", 8],
    ["contended", 8],
    ["released", 5],
    // The first round of this writer, and its second one, which announces it again.
    ["acquired", 8 + 11],
    ["extended", 7],
    ["released", 6],
  ]);
  const billed = endpoints[0]!.log.map((entry) => entry.billed);
  expect(billed).toEqual([8, 4, 8, 6, 8, 8, 7, 7, 5, 8, 8, 5, 11, 7, 6]);
});

test("a hold is released at the end of `await using`, and kept until then by `autoExtend`", async () => {
  const world = newWorld();
  const holds: Hold[] = [];
  {
    await using hold = await lockOf(world.client(), { ttl: 1_000, autoExtend: true }).acquireRead();
    await world.runtime.advance(5_000);
    expect([hold.signal.aborted, await hold.verify()]).toEqual([false, true]);
    holds.push(hold);
  }
  expect([holdsIn(world), holds[0]!.remaining()]).toEqual([nowhere, 0]);
});
