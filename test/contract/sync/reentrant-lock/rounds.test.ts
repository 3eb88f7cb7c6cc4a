import { describe, expect, test } from "vitest";
import { LockLostError } from "../../../../src/index.ts";
import { ReentrantLock, type ReentrantLockOptions } from "../../../../src/sync/index.ts";
import { memberScript } from "../../../../src/sync/internal/member.lua.ts";
import type { VirtualClient } from "../../../support/virtual-client.ts";
import { syncWorld } from "../../../support/virtual-sync.ts";

// The holds of a reentrant lock in virtual time, and what requests that are late or repeated do to them.

const newWorld = (options: Parameters<typeof syncWorld>[1] = {}) => syncWorld([memberScript], options);
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

  test("end each after its own ttl, and the key after the last", async () => {
    const world = newWorld();
    const { runtime, each } = world;
    const mine = lockOf(world.client());
    const brief = await mine.acquire({ ttl: 1_000 });
    const long = await mine.acquire({ ttl: 15_000 });
    expect(await long.extend(30_000)).toBe(30_000 - 302);
    const { signal } = brief;
    await runtime.advance(987);
    expect(signal.aborted).toBe(false);
    await runtime.advance(1);
    expect(signal.reason).toBeInstanceOf(LockLostError);
    await runtime.advance(12);
    expect([await brief.verify(), await brief.release(), await long.verify()]).toEqual([false, false, true]);
    expect(each("PTTL", "reentrant", "r")).toEqual([29_000, 29_000, 29_000]);
    expect(await lockOf(world.client()).tryAcquire()).toBe(null);
    await runtime.advance(29_000);
    expect(await lockOf(world.client()).tryAcquire()).not.toBe(null);
  });
});

describe("a release that is repeated", () => {
  test("returns what the first one did, for two timeouts", async () => {
    const { runtime, client, endpoints, ttls } = newWorld({ count: 1 });
    const own = client({ timeout: 100.3 });
    const hold = await lockOf(own).acquire();
    expect(await hold.release()).toBe(true);
    expect(Object.values(ttls())).toEqual([201]);
    const command = own.links[0]!.sent.at(-1)!;
    const again = () => endpoints[0]!.send(command, new AbortController().signal);
    await runtime.advance(200);
    expect(await again()).toEqual([command[6]]);
    await runtime.advance(201);
    expect(await again()).toEqual([0]);
  });

  test("over several endpoints returns true, and frees that hold only", async () => {
    const world = newWorld();
    const twice = world.client();
    for (const link of twice.links) link.fate = () => "twice";
    const mine = lockOf(twice);
    const [outer, inner] = [await mine.acquire(), await mine.acquire()];
    expect(holdsIn(world)).toEqual([2, 2, 2]);
    expect(await inner.extend(5_000)).toBe(5_000 - 52);
    expect(await inner.release()).toBe(true);
    expect(holdsIn(world)).toEqual([1, 1, 1]);
    expect([await outer.verify(), await lockOf(world.client()).tryAcquire()]).toEqual([true, null]);
    expect(await outer.release()).toBe(true);
    expect(holdsIn(world)).toEqual([0, 0, 0]);
  });

  test("keeps out a repeated acquire for as long; a later one holds for its ttl", async () => {
    const world = newWorld({ count: 1 });
    const { runtime, client, endpoints } = world;
    const own = client();
    const hold = await lockOf(own).acquire();
    const acquire = own.links[0]!.sent[0]!;
    const again = () => endpoints[0]!.send(acquire, new AbortController().signal);
    await hold.release();
    await runtime.advance(199);
    expect(await again()).toEqual([0, 0]);
    expect(holdsIn(world)).toEqual([0]);
    await runtime.advance(1);
    await again();
    expect(world.each("PTTL", "reentrant", "r")).toEqual([20_000]);
  });
});

describe("the options", () => {
  test("a handle shows neither a token nor the lock behind it", async () => {
    const hold = await lockOf(newWorld().client()).acquire();
    expect(Object.keys(hold).sort()).toEqual(["extend", "release", "remaining", "signal", "ttl", "verify"]);
  });
});
