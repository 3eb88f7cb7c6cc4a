import { describe, expect, test } from "vitest";
import { LockHeldError } from "../../../../src/index.ts";
import { Semaphore, type SemaphoreOptions } from "../../../../src/sync/index.ts";
import { slotScript } from "../../../../src/sync/internal/slot.lua.ts";
import { type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { sentBy, syncWorld } from "../../../support/virtual-sync.ts";

// Which slot a semaphore proposes in virtual time, and when.

/** A world in which the slot in the middle is proposed first. */
function newWorld(options: Parameters<typeof syncWorld>[1] = {}) {
  const world = syncWorld([slotScript], options);
  world.runtime.random = () => 0.7;
  return world;
}
const slots = ({ redlock }: VirtualClient, options: Partial<SemaphoreOptions> = {}) =>
  new Semaphore(redlock, "s", { limit: 3, ttl: 20_000, ...options });

/** Puts another holder's value into a slot. */
const occupy = ({ at }: ReturnType<typeof newWorld>, slot: number, indices = [0, 1, 2], ttl = 60_000) =>
  at(indices, "SET", `slot:${slot}`, "s", "somebody-else", "PX", ttl);

describe("the search for a slot", () => {
  test("on one endpoint ends with the highest that is free, in one request", async () => {
    const own = newWorld({ count: 1 }).client();
    const semaphore = slots(own, { limit: 4 });
    const permits = [];
    for (let count = 0; count < 3; count += 1) permits.push(await semaphore.acquire({ wait: 0 }));
    await permits[1]!.release();
    permits.push(await semaphore.acquire({ wait: 0 }));
    expect(permits.map(({ slot }) => slot)).toEqual([3, 2, 1, 2]);
    expect(sentBy(own)).toEqual([5]);
  });

  test("on several endpoints begins with any slot, the higher ones more often", async () => {
    const found: number[] = [];
    for (const random of [0, 0.49, 0.51, 0.7, 0.72, 0.86, 0.88, 0.99]) {
      const { runtime, client, atOnce } = newWorld();
      runtime.random = () => random;
      found.push((await atOnce(slots(client(), { limit: 4 }).acquire())).slot);
    }
    expect(found).toEqual([3, 3, 2, 2, 1, 1, 0, 0]);
  });

  test("on several endpoints goes on at once with a slot that was free, even without waiting", async () => {
    const world = newWorld();
    occupy(world, 1);
    const own = world.client();
    const permit = await world.atOnce(slots(own).tryAcquire());
    expect(permit!.slot).toBe(2);
    expect(sentBy(own)).toEqual([2, 2, 2]);
    expect(own.events.filter(({ type }) => type === "contended")).toMatchObject([{ retryIn: 0 }]);
  });

  test("prefers the slot that is free at the most endpoints", async () => {
    for (const random of [0, 0.99]) {
      const world = newWorld();
      world.runtime.random = () => 0.7;
      const own = world.client();
      const semaphore = slots(own, { limit: 5 });
      occupy(world, 2);
      occupy(world, 0, [1]);
      occupy(world, 4, [2]);
      occupy(world, 3, [0]);
      const acquiring = semaphore.tryAcquire();
      world.runtime.random = () => random;
      expect((await world.atOnce(acquiring))!.slot).toBe(1);
      expect(sentBy(own)).toEqual([2, 2, 2]);
    }
  });

  test("proposes no slot twice in a row without a pause", async () => {
    const world = newWorld();
    const own = world.client();
    // Where it was free when it was asked about, somebody else is faster: each of the first three proposals.
    occupy(world, 1);
    const proposals: string[] = [];
    own.links[0]!.fate = ([, , , , slot]) => {
      const proposed = Number(/slot:(\d)/.exec(String(slot))![1]);
      proposals.push(String(proposed));
      occupy(world, proposed);
      // The first one is free again, too late for this call.
      if (proposals.length === 2) world.each("DEL", "slot:1", "s");
      return "delivered";
    };
    const call = watch(slots(own).acquire({ wait: 0 }));
    await world.runtime.advance(0);
    expect(proposals).toEqual(["1", "2", "0"]);
    expect(call.error).toBeInstanceOf(LockHeldError);
  });
});
