import { describe, expect, test } from "vitest";
import {
  type ArrivalOptions,
  ArrivalsMissingError,
  CyclicBarrier,
  type CyclicBarrierOptions,
} from "../../../../src/sync/index.ts";
import { arrivalScript } from "../../../../src/sync/internal/arrival.lua.ts";
import { watch } from "../../../support/virtual-client.ts";
import { putArrivals, type SyncWorld, sentBy, syncWorld } from "../../../support/virtual-sync.ts";

// The parties of a barrier in virtual time: when each passes, with which number, and where the next one begins.

const newWorld = (options: Parameters<typeof syncWorld>[1] = {}) => syncWorld([arrivalScript], options);
const day = 86_400_000;
/** The first level that a run has at the time of these worlds: 10 000 for each day since 1970. */
const firstLevel = Math.floor(1_700_000_000_000 / day) * 10_000;
const generation = (level: number, run = "t0") => `g${String(level).padStart(16, "0")}${run}`;

const generationsIn = ({ each }: SyncWorld) => each("HGET", "barrier", "b", "g") as (string | null)[];
const levelsIn = (world: SyncWorld) => generationsIn(world).map((text) => Number(text?.slice(1, 17)));

/** A party in a process of its own. */
function party(world: SyncWorld, id: string, given: Partial<CyclicBarrierOptions> = {}) {
  const own = world.client();
  const barrier = new CyclicBarrier(own.redlock, "b", { parties: 3, ...given });
  const meet = (options: ArrivalOptions = { wait: 60_000 }) => watch(barrier.arriveAndWait(id, options));
  return { ...own, barrier, meet };
}

/** Puts arrivals of a generation at endpoints, in place of what they have. */
function put(world: SyncWorld, indices: readonly number[], text: string, ids: string, count = 3): void {
  world.at(indices, "DEL", "barrier", "b");
  putArrivals(world, indices, { kind: "barrier", name: "b", generation: text, ids: [...ids], count });
}

describe("three parties", () => {
  test("pass together, as soon as the last has arrived, with numbers that grow by 1", async () => {
    const world = newWorld();
    const { runtime } = world;
    const parties = ["a", "b", "c"].map((id) => party(world, id));
    for (let turn = 0; turn < 2; turn += 1) {
      const [first, second, last] = [0, 1, 2].map((index) => parties[(turn + index) % 3]!);
      const early = [first!.meet(), second!.meet()];
      await runtime.advance(15);
      expect(early.map(({ settled }) => settled)).toEqual([false, false]);
      const late = last!.meet();
      await runtime.advance(0);
      expect(late.value).toBe(firstLevel + turn);
      await runtime.advance(10);
      expect(early.map(({ value }) => value)).toEqual([firstLevel + turn, firstLevel + turn]);
    }
  });

  test("each send two requests to arrive, one in each pause, and the last one or two more", async () => {
    const world = newWorld();
    const [a, b] = [party(world, "a", { parties: 2 }), party(world, "b", { parties: 2 })];
    a.meet();
    await world.runtime.advance(0);
    expect(sentBy(a)).toEqual([2, 2, 2]);
    await world.runtime.advance(20);
    expect(sentBy(a)).toEqual([4, 4, 4]);
    b.meet();
    await world.runtime.advance(0);
    expect(sentBy(b)).toEqual([3, 3, 3]);
    await world.runtime.advance(10);
    // It finds the next generation, and moves the endpoints there, too.
    expect(sentBy(a)).toEqual([6, 6, 6]);
  });
});

describe("the number of a generation", () => {
  test("begins with the time in units of the ttl: higher than those that a quorum has forgotten", async () => {
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

  test("is the later one where a minority remembers an earlier run", async () => {
    const world = newWorld();
    put(world, [2], generation(77), "ab");
    const own = party(world, "c", { parties: 1 });
    own.links[2]!.fate = () => "refused";
    const call = own.meet();
    await world.runtime.advance(0);
    expect([call.value, levelsIn(world)]).toEqual([firstLevel, [firstLevel + 1, firstLevel + 1, 77]]);
  });
});

describe("a party", () => {
  test("that gives up waiting has arrived; called again it passes at once with the same number", async () => {
    const world = newWorld();
    const [a, b, c] = ["a", "b", "c"].map((id) => party(world, id)) as [Party, Party, Party];
    const gaveUp = a.meet({ wait: 25 });
    await world.runtime.advance(24);
    expect(gaveUp.settled).toBe(false);
    await world.runtime.advance(1);
    expect(gaveUp.error).toBeInstanceOf(ArrivalsMissingError);
    expect(gaveUp.error).toMatchObject({ resource: "b", count: 3, arrived: 1, waited: 25 });
    const others = [b.meet(), c.meet()];
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

  test("whose process restarts counts once, and joins the generation that it finds", async () => {
    const world = newWorld();
    const caller = new AbortController();
    const died = party(world, "a").meet({ wait: 60_000, signal: caller.signal });
    await world.runtime.advance(5);
    caller.abort(new Error("killed"));
    await world.runtime.advance(0);
    expect(died.error).toBe(caller.signal.reason);
    const again = party(world, "a").meet();
    const second = party(world, "b").meet();
    await world.runtime.advance(25);
    expect([again.settled, second.settled]).toEqual([false, false]);
    party(world, "c").meet();
    await world.runtime.advance(10);
    expect([again.value, second.value]).toEqual([firstLevel, firstLevel]);
  });

  test("repeats its arrival for endpoints that have lost it", async () => {
    const world = newWorld();
    const early = [party(world, "a").meet(), party(world, "b").meet()];
    await world.runtime.advance(20);
    world.each("DEL", "barrier", "b");
    await world.runtime.advance(20);
    expect(world.each("HLEN", "barrier", "b")).toEqual([4, 4, 4]);
    party(world, "c").meet();
    await world.runtime.advance(10);
    expect(early.map(({ value }) => value)).toEqual([firstLevel, firstLevel]);
  });

  test("joins no generation of a minority before a quorum has answered", async () => {
    const world = newWorld();
    put(world, [0], generation(5), "bc");
    put(world, [1, 2], generation(6), "");
    const own = party(world, "a");
    for (const link of own.links.slice(1)) link.fate = () => (link.sent.length < 3 ? "refused" : "delivered");
    const call = own.meet();
    await world.runtime.advance(15);
    expect([call.settled, levelsIn(world)]).toEqual([false, [5, 6, 6]]);
    await world.runtime.advance(10);
    expect([call.settled, levelsIn(world)]).toEqual([false, [6, 6, 6]]);
    expect(world.each("HKEYS", "barrier", "b")[0]).toContain("ia");
  });

  test("in a run that loses passes with the number of the run that wins, where it has arrived, too", async () => {
    const world = newWorld();
    const own = party(world, "a");
    const call = own.meet();
    await world.runtime.advance(5);
    const mine = generationsIn(world)[0]!;
    expect(mine).toMatch(/^g\d{16}t/);
    // At the same level, the run with the greater name.
    const greater = `${mine.slice(0, 17)}u`;
    put(world, [0, 1, 2], greater, "b");
    await world.runtime.advance(10);
    expect([call.settled, generationsIn(world)]).toEqual([false, [greater, greater, greater]]);
    expect(world.each("HKEYS", "barrier", "b")[1]).toContain("ia");
    // That run is complete without the other one.
    put(world, [0, 1, 2], generation(firstLevel + 1, "u"), "");
    await world.runtime.advance(10);
    expect(call.value).toBe(firstLevel);
  });

  test("passes when the run where it arrived first is complete, although it waits in another", async () => {
    const world = newWorld();
    const own = party(world, "a");
    const call = own.meet();
    await world.runtime.advance(5);
    const mine = generationsIn(world)[0]!;
    put(world, [0, 1, 2], `${mine.slice(0, 17)}u`, "b");
    await world.runtime.advance(10);
    put(world, [0, 1, 2], generation(firstLevel + 1, mine.slice(17)), "");
    await world.runtime.advance(10);
    expect(call.value).toBe(firstLevel);
  });

  test("arrives again in a later generation of a run that it does not know", async () => {
    const world = newWorld();
    const call = party(world, "a").meet();
    await world.runtime.advance(5);
    put(world, [0, 1, 2], generation(firstLevel + 500, "x"), "b");
    await world.runtime.advance(20);
    expect(call.settled).toBe(false);
    put(world, [0, 1, 2], generation(firstLevel + 501, "x"), "");
    await world.runtime.advance(10);
    expect(call.value).toBe(firstLevel + 500);
  });

  test("has passed when a quorum, not a minority, has the next generation", async () => {
    const world = newWorld();
    const own = party(world, "a", { parties: 2 });
    const call = own.meet();
    await world.runtime.advance(5);
    const mine = generationsIn(world)[0]!;
    const next = generation(firstLevel + 1, mine.slice(17));
    put(world, [2], next, "", 2);
    for (const link of own.links.slice(0, 2)) link.fate = () => "lost";
    // It finds it at 10 ms, and tries to bring the others there in rounds of 100 ms.
    await world.runtime.advance(300);
    expect(call.settled).toBe(false);
    own.links[0]!.fate = () => "delivered";
    await world.runtime.advance(110);
    expect([call.value, generationsIn(world)]).toEqual([firstLevel, [next, mine, next]]);
  });

  test("that is given up for good is forgotten: there are no more ids than parties", async () => {
    const world = newWorld();
    const own = world.client();
    const barrier = new CyclicBarrier(own.redlock, "b", { parties: 2 });
    const meet = (id: string, wait = 0) => watch(barrier.arriveAndWait(id, { wait }));
    const requests = async (id: string) => {
      const before = own.links[0]!.sent.length;
      meet(id);
      await world.runtime.advance(0);
      return own.links[0]!.sent.length - before;
    };
    put(world, [0, 1, 2], generation(firstLevel), "", 9);
    world.each("HSET", "barrier", "b", "n", 2);
    // Two requests: it looks, and arrives.
    expect(await requests("a")).toBe(2);
    // One: it knows where it arrived.
    expect(await requests("a")).toBe(1);
    world.each("HDEL", "barrier", "b", "ia");
    expect(await requests("x")).toBe(2);
    world.each("HDEL", "barrier", "b", "ix");
    // `a` was used again, so that `x` is the oldest.
    expect(await requests("a")).toBe(1);
    world.each("HDEL", "barrier", "b", "ia");
    expect(await requests("y")).toBe(2);
    world.each("HDEL", "barrier", "b", "iy");
    expect(await requests("a")).toBe(1);
    world.each("HDEL", "barrier", "b", "ia");
    expect(await requests("x")).toBe(2);
  });
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
