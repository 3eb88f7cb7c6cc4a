import { describe, expect, test } from "vitest";
import {
  type ArrivalOptions,
  ArrivalsMissingError,
  CountDownLatch,
  LimitMismatchError,
} from "../../../../src/sync/index.ts";
import { rejection } from "../../../support/outcomes.ts";
import { type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { newWorld, putArrivals, type SyncWorld, sentBy } from "../../../support/virtual-sync.ts";

// The rounds of a latch in virtual time: when it opens, what a call returns then, how long it is remembered, and
// what an operator resets.

const day = 86_400_000;

const latchOf = ({ redlock }: VirtualClient, count = 3, options: ArrivalOptions = {}) =>
  new CountDownLatch(redlock, "l", { count, ...options });

/** By endpoint: the ids that have arrived there. */
const idsIn = ({ each }: SyncWorld) =>
  each("HKEYS", "latch", "l").map((fields) =>
    (fields as string[])
      .filter((field) => field.length > 1)
      .map((field) => field.slice(1))
      .sort()
      .join(),
  );
const generationsIn = ({ each }: SyncWorld) => each("HGET", "latch", "l", "g");

/** Puts arrivals, or an open latch, at endpoints. */
function put(world: SyncWorld, indices: readonly number[], ids: string, generation = "g0", count = 3): void {
  putArrivals(world, indices, { kind: "latch", name: "l", generation, ids: [...ids], count });
}

describe("an arrival", () => {
  test("looks once more where the endpoints differ: others may have arrived at the same moment", async () => {
    const world = newWorld();
    put(world, [0], "a");
    const own = world.client();
    expect(await world.atOnce(latchOf(own).arrive("c"))).toEqual({ open: false, arrived: 2, remaining: 1 });
    expect(sentBy(own)).toEqual([2, 2, 2]);
    expect(idsIn(world)).toEqual(["a,c", "c", "c"]);
  });
});

describe("an open latch", () => {
  test("that only a minority knows of is written to a quorum before a call returns it", async () => {
    const world = newWorld();
    put(world, [2], "", "g1");
    put(world, [0, 1], "ab");
    const own = world.client();
    expect(await world.atOnce(latchOf(own).inspect())).toMatchObject({ open: true });
    expect([generationsIn(world), sentBy(own)]).toEqual([
      ["g1", "g1", "g1"],
      [2, 2, 2],
    ]);
  });
});

describe("waiting", () => {
  test("ends after `wait` with what is missing", async () => {
    const { runtime, client } = newWorld();
    for (const id of ["a", "b"]) await latchOf(client()).arrive(id);
    const own = client();
    const call = watch(latchOf(own).wait({ wait: 25 }));
    await runtime.advance(24);
    expect(call.settled).toBe(false);
    await runtime.advance(1);
    expect(call.error).toBeInstanceOf(ArrivalsMissingError);
    expect(call.error).toMatchObject({
      name: "ArrivalsMissingError",
      code: "ARRIVALS_MISSING",
      resource: "l",
      count: 3,
      arrived: 2,
      waited: 25,
    });
    expect((call.error as Error).message).toMatch(/2.*3.*"l"/);
    expect(sentBy(own)).toEqual([4, 4, 4]);
    // Without waiting there is one look.
    const brief = client();
    expect(await rejection(latchOf(brief).wait({ wait: 0 }))).toBeInstanceOf(ArrivalsMissingError);
    expect(sentBy(brief)).toEqual([1, 1, 1]);
  });
});

describe("the count", () => {
  test("that differs is an error on a quorum", async () => {
    const world = newWorld();
    await latchOf(world.client(), 3).arrive("a");
    const other = latchOf(world.client(), 4);
    for (const call of [() => other.arrive("b"), () => other.wait(), () => other.inspect()]) {
      const error = await rejection(call());
      expect(error).toBeInstanceOf(LimitMismatchError);
      expect(error).toMatchObject({
        message: 'latch "l" already has count 3; this client asked for 4',
        resource: "l",
        count: 4,
        inUse: 3,
      });
    }
    expect(idsIn(world)).toEqual(["a", "a", "a"]);
  });
});

describe("the ttl", () => {
  test("is a day, or as given; arrivals renew it, looks do not", async () => {
    const world = newWorld();
    const { runtime, client, each } = world;
    const latch = latchOf(client());
    await latch.arrive("a");
    expect(each("PTTL", "latch", "l")).toEqual([day, day, day]);
    await runtime.advance(day / 2);
    await latch.arrive("a");
    expect(each("PTTL", "latch", "l")).toEqual(new Array(3).fill(day / 2));
    await runtime.advance(1);
    await latch.inspect();
    expect(each("PTTL", "latch", "l")).toEqual(new Array(3).fill(day / 2 - 1));
    await latch.arrive("b");
    expect(each("PTTL", "latch", "l")).toEqual([day, day, day]);
    const brief = new CountDownLatch(client().redlock, "m", { count: 2, ttl: 40_000 });
    await brief.arrive("a");
    expect(each("PTTL", "latch", "m")).toEqual([40_000, 40_000, 40_000]);
    await runtime.advance(40_000);
    expect(await brief.arrive("b")).toEqual({ open: false, arrived: 1, remaining: 1 });
  });
});

describe("a latch that was reset", () => {
  const epoch = `g2${"1".padStart(16, "0")}t0`;

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
});
