import { describe, expect, test } from "vitest";
import { LockHeldError, QuorumError } from "../../../../src/index.ts";
import { Semaphore, type SemaphoreOptions } from "../../../../src/sync/index.ts";
import { slotScript } from "../../../../src/sync/internal/slot.lua.ts";
import { rejection } from "../../../support/outcomes.ts";
import { delays, type VirtualClient, watch } from "../../../support/virtual-client.ts";
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

  test("while none is free proposes the one that is free at the most endpoints after the pause", async () => {
    const world = newWorld();
    for (const slot of [0, 1]) occupy(world, slot);
    occupy(world, 2, [0, 1]);
    const own = world.client();
    const call = watch(slots(own).acquire());
    await world.runtime.advance(9);
    expect(sentBy(own)).toEqual([1, 1, 1]);
    world.at([0, 1], "DEL", "slot:2", "s");
    await world.runtime.advance(1);
    expect(call.value!.slot).toBe(2);
    expect(sentBy(own)).toEqual([2, 2, 2]);
  });

  test("counts an endpoint that has not answered as free", async () => {
    const world = newWorld();
    const { slow } = delays(world.runtime);
    occupy(world, 1);
    occupy(world, 2);
    occupy(world, 0, [1]);
    const own = world.client();
    own.links[2]!.fate = () => slow(50);
    const call = watch(slots(own).tryAcquire());
    await world.runtime.advance(0);
    expect(sentBy(own)).toEqual([2, 2, 2]);
    await world.runtime.advance(50);
    expect(call.value!.slot).toBe(0);
  });

  test("does not count an endpoint that failed as free", async () => {
    const world = newWorld();
    occupy(world, 1);
    occupy(world, 2);
    occupy(world, 0, [1]);
    const own = world.client();
    own.links[2]!.fate = () => "refused";
    expect(await world.atOnce(slots(own).tryAcquire())).toBe(null);
    // The failed endpoint may have granted it.
    expect(sentBy(own)).toEqual([1, 1, 2]);
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

  test("ends with the deadline, also where others are faster each time", async () => {
    const world = newWorld();
    const { slow } = delays(world.runtime);
    const own = world.client();
    let proposals = 0;
    for (const link of own.links) link.fate = () => slow(40);
    own.links[0]!.fate = ([, , , , slot]) => {
      proposals += 1;
      occupy(world, Number(/slot:(\d)/.exec(String(slot))![1]));
      return slow(40);
    };
    const deadline = world.runtime.now() + 60;
    const call = watch(slots(own, { limit: 10 }).acquire({ deadline }));
    await world.runtime.advance(80);
    expect(call.error).toBeInstanceOf(LockHeldError);
    expect(proposals).toBe(2);
  });

  test("begins anew after a pause: a slot that was refused before it is tried again", async () => {
    const world = newWorld();
    for (const slot of [0, 1]) occupy(world, slot);
    const own = world.client();
    const call = watch(slots(own, { limit: 2 }).acquire());
    await world.runtime.advance(5);
    // It has proposed slot 1, and proposes slot 0 next.
    world.runtime.random = () => 0.9;
    await world.runtime.advance(10);
    world.each("DEL", "slot:1", "s");
    await world.runtime.advance(5);
    expect(sentBy(own)).toEqual([4, 4, 4]);
    expect(call.value!.slot).toBe(1);
  });

  test("after a round without a result goes on at once only while it waits", async () => {
    /** One endpoint refuses the first proposal, one fails, and one grants. */
    const split = () => {
      const world = newWorld();
      const own = world.client();
      occupy(world, 1, [0]);
      own.links[1]!.fate = () => "refused";
      return { ...world, own };
    };
    const brief = split();
    const error = await rejection(brief.atOnce(slots(brief.own).acquire({ wait: 0 })));
    expect(error).toBeInstanceOf(QuorumError);
    // What granted, and what may have, gets a rollback.
    expect(sentBy(brief.own)).toEqual([1, 2, 2]);
    const waiting = split();
    expect((await waiting.atOnce(slots(waiting.own).acquire({ wait: 1 }))).slot).toBe(2);
    expect(sentBy(waiting.own)).toEqual([2, 3, 3]);
  });
});
