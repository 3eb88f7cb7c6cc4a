import { expect, test } from "vitest";
import {
  type ArrivalOptions,
  ArrivalsMissingError,
  CountDownLatch,
  LimitMismatchError,
} from "../../../../src/sync/index.ts";
import { rejection } from "../../../support/outcomes.ts";
import { type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { newWorld, sentBy } from "../../../support/virtual-sync.ts";

// A latch in virtual time: what a call that waits is told, and how long arrivals are remembered.

const day = 86_400_000;

const latchOf = ({ redlock }: VirtualClient, count = 3, options: ArrivalOptions = {}) =>
  new CountDownLatch(redlock, "l", { count, ...options });

test("an arrival looks once more where the endpoints differ: others may have arrived at that moment", async () => {
  const world = newWorld();
  world.at([0], "HSET", "latch", "l", "g", "g0", "n", 3, "ia", 1);
  const own = world.client();
  expect(await world.atOnce(latchOf(own).arrive("c"))).toEqual({ open: false, arrived: 2, remaining: 1 });
  expect(sentBy(own)).toEqual([2, 2, 2]);
});

test("an open latch that only a minority knows of is written to a quorum before a call returns it", async () => {
  const world = newWorld();
  world.at([2], "HSET", "latch", "l", "g", "g1", "n", 3);
  world.at([0, 1], "HSET", "latch", "l", "g", "g0", "n", 3, "ia", 1, "ib", 1);
  expect(await world.atOnce(latchOf(world.client()).inspect())).toMatchObject({ open: true });
  expect(world.each("HGET", "latch", "l", "g")).toEqual(["g1", "g1", "g1"]);
});

test("waiting ends after `wait` with what is missing", async () => {
  const { runtime, client } = newWorld();
  for (const id of ["a", "b"]) await latchOf(client()).arrive(id);
  const own = client();
  const call = watch(latchOf(own).wait({ wait: 25 }));
  await runtime.advance(24);
  expect(call.settled).toBe(false);
  await runtime.advance(1);
  expect(call.error).toBeInstanceOf(ArrivalsMissingError);
  expect(call.error).toMatchObject({ resource: "l", count: 3, arrived: 2, waited: 25 });
  expect(sentBy(own)).toEqual([4, 4, 4]);
  // Without waiting there is one look.
  const brief = client();
  expect(await rejection(latchOf(brief).wait({ wait: 0 }))).toBeInstanceOf(ArrivalsMissingError);
  expect(sentBy(brief)).toEqual([1, 1, 1]);
});

test("the count that differs is an error on a quorum", async () => {
  const world = newWorld();
  await latchOf(world.client(), 3).arrive("a");
  const other = latchOf(world.client(), 4);
  for (const call of [() => other.arrive("b"), () => other.wait(), () => other.inspect()]) {
    const error = await rejection(call());
    expect(error).toBeInstanceOf(LimitMismatchError);
    expect(error).toMatchObject({ resource: "l", count: 4, inUse: 3 });
  }
  expect(await world.atOnce(latchOf(world.client()).inspect())).toMatchObject({ arrived: 1 });
});

test("the ttl is a day, or as given; arrivals renew it, looks do not", async () => {
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

test("who waits does not count what it saw before a reset", async () => {
  const { runtime, client, each } = newWorld();
  const arrive = (epoch: string, id: string) =>
    each("HSET", "latch", "l", "g", `${epoch}0`, "n", 2, `i${id}`, 1);
  arrive("g", "a");
  const call = watch(latchOf(client(), 2).wait());
  await runtime.advance(5);
  each("DEL", "latch", "l");
  const later = `g2${"1".padStart(16, "0")}t0`;
  arrive(later, "b");
  await runtime.advance(20);
  expect(call.settled).toBe(false);
  arrive(later, "c");
  await runtime.advance(10);
  expect(call.settled).toBe(true);
});
