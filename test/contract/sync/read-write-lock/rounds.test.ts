import { describe, expect, test } from "vitest";
import { announcedIn, holdsIn, lockOf, newWorld, nowhere } from "./world.ts";

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
});
