import { describe, expect, test } from "vitest";
import { ArrivalsMissingError, CountDownLatch } from "../../../../src/sync/index.ts";
import { arrivalScript } from "../../../../src/sync/internal/arrival.lua.ts";
import { type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { putArrivals, type SyncWorld, sentBy, syncWorld, timesOf } from "../../../support/virtual-sync.ts";

// Calls of a latch in virtual time while an operator resets it.

const newWorld = () => syncWorld([arrivalScript]);
const latchOf = ({ redlock }: VirtualClient, count = 3) => new CountDownLatch(redlock, "l", { count });
const generationsIn = ({ each }: SyncWorld) => each("HGET", "latch", "l", "g");

/** Puts arrivals, or an open latch, at endpoints. */
function put(world: SyncWorld, indices: readonly number[], ids: string, generation = "g0", count = 3): void {
  putArrivals(world, indices, { kind: "latch", name: "l", generation, ids: [...ids], count });
}

describe("a latch that was reset", () => {
  const epoch = `g2${"1".padStart(16, "0")}t0`;

  test("an arrival goes on in the latch that begins then, and earlier ones do not count", async () => {
    const world = newWorld();
    put(world, [0, 1], "abc", "g1");
    put(world, [2], "", `${epoch}0`);
    const own = world.client();
    expect(await world.atOnce(latchOf(own).arrive("d"))).toEqual({ open: false, arrived: 1, remaining: 2 });
    expect(generationsIn(world)).toEqual(new Array(3).fill(`${epoch}0`));
  });

  test("who looks finds it with one request", async () => {
    const world = newWorld();
    put(world, [0, 1, 2], "ab", `${epoch}0`);
    const own = world.client();
    expect(await world.atOnce(latchOf(own).inspect())).toEqual({ open: false, arrived: 2, remaining: 1 });
    expect(sentBy(own)).toEqual([1, 1, 1]);
  });

  test("who waits does not count what it saw before", async () => {
    const world = newWorld();
    put(world, [0, 1, 2], "a", "g0", 2);
    const own = world.client();
    const call = watch(latchOf(own, 2).wait());
    await world.runtime.advance(5);
    world.each("DEL", "latch", "l");
    put(world, [0, 1, 2], "b", `${epoch}0`, 2);
    await world.runtime.advance(20);
    expect(call.settled).toBe(false);
    put(world, [0, 1, 2], "c", `${epoch}0`, 2);
    await world.runtime.advance(10);
    expect([call.settled, generationsIn(world)]).toEqual([true, new Array(3).fill(`${epoch}1`)]);
  });

  test("who waits ignores endpoints that have not heard of it", async () => {
    const world = newWorld();
    put(world, [0, 1], "abc", "g1");
    put(world, [2], "", `${epoch}0`);
    const own = world.client();
    own.links[0]!.fate = () => "refused";
    const call = watch(latchOf(own).wait({ wait: 45 }));
    await world.runtime.advance(5);
    own.links[0]!.fate = () => "delivered";
    own.links[2]!.fate = () => "refused";
    await world.runtime.advance(40);
    expect(call.error).toBeInstanceOf(ArrivalsMissingError);
    expect(generationsIn(world)).toEqual(["g1", "g1", `${epoch}0`]);
  });

  test("who was about to open it looks again", async () => {
    const world = newWorld();
    put(world, [0, 1, 2], "ab", "g0", 2);
    const own = world.client();
    own.links[1]!.fate = () => {
      if (own.links[1]!.sent.length === 2) {
        world.each("DEL", "latch", "l");
        put(world, [0, 1, 2], "", `${epoch}0`, 2);
      }
      return "delivered";
    };
    const since = world.runtime.now();
    const call = watch(latchOf(own, 2).wait());
    await world.runtime.advance(10);
    expect([call.settled, generationsIn(world)]).toEqual([false, new Array(3).fill(`${epoch}0`)]);
    // It looks, tries to open it, looks at once, and once more after the pause.
    expect(timesOf(world, since)[0]).toEqual([0, 0, 0, 10]);
  });
});
