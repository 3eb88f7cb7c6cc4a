import { expect, test } from "vitest";
import {
  type ArrivalOptions,
  ArrivalsMissingError,
  CyclicBarrier,
  type CyclicBarrierOptions,
} from "../../../../src/sync/index.ts";
import { watch } from "../../../support/virtual-client.ts";
import { newWorld, type SyncWorld } from "../../../support/virtual-sync.ts";

// The parties of a barrier in virtual time: when each passes, with which number, and where the next one begins.

const day = 86_400_000;
/** The first level that a run has at the time of these worlds: 10 000 for each day since 1970. */
const firstLevel = Math.floor(1_700_000_000_000 / day) * 10_000;

const generationsIn = ({ each }: SyncWorld) => each("HGET", "barrier", "b", "g") as (string | null)[];
const levelsIn = (world: SyncWorld) => generationsIn(world).map((text) => Number(text?.slice(1, 17)));

/** A party in a process of its own. */
function party(world: SyncWorld, id: string, given: Partial<CyclicBarrierOptions> = {}) {
  const own = world.client();
  const barrier = new CyclicBarrier(own.redlock, "b", { parties: 3, ...given });
  const meet = (options: ArrivalOptions = { wait: 60_000 }) => watch(barrier.arriveAndWait(id, options));
  return { ...own, barrier, meet };
}

test("the number of a generation begins with the time in units of the ttl: higher than those that a quorum has forgotten", async () => {
  const world = newWorld();
  const call = party(world, "a", { parties: 1, ttl: 1_000 }).meet();
  await world.runtime.advance(0);
  expect(call.value).toBe(17_000_000_000_000);
  expect(levelsIn(world)).toEqual(new Array(3).fill(17_000_000_000_001));
  expect(world.each("PTTL", "barrier", "b")).toEqual([1_000, 1_000, 1_000]);
  await world.runtime.advance(1_000);
  const next = party(world, "a", { parties: 1, ttl: 1_000 }).meet();
  await world.runtime.advance(0);
  expect(next.value).toBe(17_000_000_010_000);
});

test("a party that gives up waiting has arrived; called again it passes at once with the same number", async () => {
  const world = newWorld();
  const [a, b, c] = ["a", "b", "c"].map((id) => party(world, id)) as [Party, Party, Party];
  const gaveUp = a.meet({ wait: 25 });
  await world.runtime.advance(24);
  expect(gaveUp.settled).toBe(false);
  await world.runtime.advance(1);
  expect(gaveUp.error).toBeInstanceOf(ArrivalsMissingError);
  expect(gaveUp.error).toMatchObject({ resource: "b", count: 3, arrived: 1, waited: 25 });
  const others = [b.meet()];
  await world.runtime.advance(20);
  expect(others[0]!.settled).toBe(false);
  others.push(c.meet());
  await world.runtime.advance(20);
  expect(others.map(({ value }) => value)).toEqual([firstLevel, firstLevel]);
  // The others are at the next generation by now.
  const early = b.meet();
  await world.runtime.advance(20);
  const again = a.meet({ wait: 0 });
  await world.runtime.advance(0);
  expect([again.value, early.settled]).toEqual([firstLevel, false]);
  const next = [a.meet(), c.meet()];
  await world.runtime.advance(20);
  expect([early, ...next].map(({ value }) => value)).toEqual(new Array(3).fill(firstLevel + 1));
});

type Party = ReturnType<typeof party>;

test("the barrier is remembered for a day, or for its ttl; those who wait renew it", async () => {
  const world = newWorld();
  party(world, "a").meet({ wait: 0 });
  await world.runtime.advance(0);
  expect(world.each("PTTL", "barrier", "b")).toEqual([day, day, day]);
  await world.runtime.advance(1_000);
  party(world, "b", { ttl: 2 * day }).meet({ wait: 0 });
  await world.runtime.advance(0);
  expect(world.each("PTTL", "barrier", "b")).toEqual([2 * day, 2 * day, 2 * day]);
});
