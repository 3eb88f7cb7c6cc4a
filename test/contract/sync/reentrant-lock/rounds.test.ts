import { describe, expect, test } from "vitest";
import { ReentrantLock, type ReentrantLockOptions } from "../../../../src/sync/index.ts";
import type { VirtualClient } from "../../../support/virtual-client.ts";
import { newWorld } from "../../../support/virtual-sync.ts";

// The holds of a reentrant lock in virtual time, and what requests that are late or repeated do to them.

const lockOf = ({ redlock }: VirtualClient, options: ReentrantLockOptions = {}) =>
  new ReentrantLock(redlock, "r", { ttl: 20_000, ...options });

const holdsIn = ({ each }: ReturnType<typeof newWorld>) => each("ZCARD", "reentrant", "r");

describe("the holds of one owner", () => {
  test("exist together, and keep others out until the last is released", async () => {
    const world = newWorld();
    const [mine, theirs] = [lockOf(world.client()), lockOf(world.client())];
    const holds = [await mine.acquire(), await mine.acquire(), await mine.acquire()];
    expect(holdsIn(world)).toEqual([3, 3, 3]);
    for (const hold of holds) {
      expect(await theirs.tryAcquire()).toBe(null);
      expect([hold.ttl, hold.remaining(), await hold.verify()]).toEqual([20_000, 19_798, true]);
      expect(await hold.release()).toBe(true);
      expect([await hold.release(), await hold.verify(), hold.signal.aborted]).toEqual([false, false, false]);
    }
    expect(holdsIn(world)).toEqual([0, 0, 0]);
    expect(await theirs.tryAcquire()).not.toBe(null);
    expect(await mine.tryAcquire()).toBe(null);
  });

  test("are those of one object, or of one name in several processes", async () => {
    const { client } = newWorld();
    const mine = lockOf(client());
    await mine.acquire();
    const { owner } = mine;
    expect(await lockOf(client()).tryAcquire()).toBe(null);
    expect(await lockOf(client(), { owner: `${owner}1` }).tryAcquire()).toBe(null);
    expect(await lockOf(client(), { owner: owner.slice(1) }).tryAcquire()).toBe(null);
    expect(await lockOf(client(), { owner }).tryAcquire()).not.toBe(null);
  });
});
