import { describe, expect, test } from "vitest";
import { LockHeldError } from "../../../../src/index.ts";
import { Semaphore, type SemaphoreOptions } from "../../../../src/sync/index.ts";
import { rejection } from "../../../support/outcomes.ts";
import { type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { newWorld, sentBy } from "../../../support/virtual-sync.ts";

// The rounds of a semaphore in virtual time: which slot is proposed, when, and what the endpoints keep.

const slots = ({ redlock }: VirtualClient, options: Partial<SemaphoreOptions> = {}) =>
  new Semaphore(redlock, "s", { limit: 3, ttl: 20_000, ...options });

describe("the search for a free permit", () => {
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

  test("on several endpoints goes on at once with one that was free, even without waiting", async () => {
    const { runtime, client, each, atOnce } = newWorld();
    // The slot in the middle is proposed first.
    runtime.random = () => 0.7;
    each("SET", "slot:1", "s", "somebody-else", "PX", 60_000);
    const own = client();
    expect((await atOnce(slots(own).tryAcquire()))!.slot).toBe(2);
    expect(sentBy(own)).toEqual([2, 2, 2]);
    expect(own.events.filter(({ type }) => type === "contended")).toMatchObject([{ retryIn: 0 }]);
  });

  test("asks for none twice in a row without a pause", async () => {
    const { runtime, client, each } = newWorld();
    runtime.random = () => 0.7;
    const own = client();
    // Each one that was free when it was asked about is somebody else's by now, and the first one is free again.
    const asked: string[] = [];
    own.links[0]!.fate = ([, , , , key]) => {
      const [slot = ""] = /slot:\d/.exec(String(key)) ?? [];
      asked.push(slot);
      each("SET", slot, "s", "somebody-else", "PX", 60_000);
      if (asked.length === 2) each("DEL", "slot:1", "s");
      return "delivered";
    };
    expect(await rejection(slots(own).acquire({ wait: 0 }))).toBeInstanceOf(LockHeldError);
    expect(asked).toEqual(["slot:1", "slot:2", "slot:0"]);
  });
});

describe("the limit", () => {
  test("is remembered as long as any permit of it", async () => {
    const { runtime, client, each, atOnce } = newWorld();
    const semaphore = slots(client());
    const first = await semaphore.acquire({ ttl: 5_000 });
    expect(each("PTTL", "limit", "s")).toEqual([5_000, 5_000, 5_000]);
    const second = await atOnce(semaphore.acquire({ ttl: 2_000 }));
    expect(each("PTTL", "limit", "s")).toEqual([5_000, 5_000, 5_000]);
    await second.extend(40_000);
    expect(each("PTTL", "limit", "s")).toEqual([40_000, 40_000, 40_000]);
    await runtime.advance(1_000);
    await second.extend(15_000);
    expect(each("PTTL", `slot:${second.slot}`, "s")).toEqual([15_000, 15_000, 15_000]);
    expect(each("PTTL", "limit", "s")).toEqual([39_000, 39_000, 39_000]);
    expect(each("PTTL", `slot:${first.slot}`, "s")).toEqual([4_000, 4_000, 4_000]);
  });

  test("may differ: callers share the permits below their own limit", async () => {
    const { client, atOnce } = newWorld();
    const [three, five] = [slots(client()), slots(client(), { limit: 5 })];
    const small = [];
    for (let count = 0; count < 2; count += 1) small.push((await atOnce(three.tryAcquire()))!);
    const large = [];
    for (let count = 0; count < 3; count += 1) large.push((await atOnce(five.tryAcquire()))!);
    expect([...small, ...large].map(({ slot }) => slot).sort()).toEqual([0, 1, 2, 3, 4]);
    expect([await atOnce(three.tryAcquire()), await atOnce(five.tryAcquire())]).toEqual([null, null]);
    // A smaller one drains: what others hold above it is none of its own.
    const above = large.filter(({ slot }) => slot >= 3);
    await above[0]!.release();
    expect(await atOnce(three.tryAcquire())).toBe(null);
    expect((await atOnce(five.tryAcquire()))!.slot).toBe(above[0]!.slot);
  });

  test("that differs is an event with both limits, once for each call, granted or not", async () => {
    const { runtime, client, atOnce } = newWorld();
    const own = client();
    const two = slots(own, { limit: 2 });
    await atOnce(two.acquire());
    await atOnce(two.acquire());
    const [waiting, granted] = [client(), client()];
    const refused = watch(slots(waiting, { limit: 1 }).acquire({ wait: 50 }));
    await runtime.advance(100);
    expect(refused.error).toBeInstanceOf(LockHeldError);
    await atOnce(slots(granted).acquire());
    const mismatches = [own, waiting, granted].map(({ events }) =>
      events.filter(({ type }) => type === "limitMismatch"),
    );
    const mismatch = { type: "limitMismatch", resources: ["s"], inUse: 2 };
    expect(mismatches).toEqual([[], [{ ...mismatch, limit: 1 }], [{ ...mismatch, limit: 3 }]]);
  });
});

test("inspect returns how many permits a quorum has, and changes nothing", async () => {
  const world = newWorld();
  const { client, atOnce } = world;
  const semaphore = slots(client());
  expect(await semaphore.inspect()).toEqual({ held: 0, limitInUse: undefined });
  await atOnce(semaphore.acquire());
  world.at([2], "SET", "slot:0", "s", "other", "PX", 60_000);
  const before = world.ttls();
  expect(await semaphore.inspect()).toEqual({ held: 1, limitInUse: 3 });
  expect(world.ttls()).toEqual(before);
});
