import { describe, expect, test } from "vitest";
import { LockHeldError } from "../../../../src/index.ts";
import { delays, watch } from "../../../support/virtual-client.ts";
import { announcedIn, holdsIn, lockOf, newWorld, nowhere, voidsIn, withWaitingWriter } from "./world.ts";

// Readers and writers in virtual time: who holds it, how long a waiting writer is announced, and what stays.

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
});

describe("a request that is executed twice", () => {
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
  // It waits for nobody, and announces nothing.
  const fourth = await lock.acquireWrite();
  await fourth.release();
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
    ["acquired", 7],
    ["released", 6],
  ]);
  const billed = endpoints[0]!.log.map((entry) => entry.billed);
  expect(billed).toEqual([8, 4, 8, 6, 8, 8, 7, 7, 5, 8, 8, 5, 11, 7, 6, 7, 6]);
});
