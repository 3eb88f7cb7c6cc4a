import { describe, expect, test } from "vitest";
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

describe("a release", () => {
  test("leaves a tombstone of the announcement where it may still be under way", async () => {
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
