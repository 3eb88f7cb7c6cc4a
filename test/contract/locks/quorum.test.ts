import { describe, expect, test } from "vitest";
import { QuorumError, Redlock } from "../../../src/index.ts";
import { forceRelease, inspect } from "../../../src/inspect/index.ts";
import { rejection } from "../../support/outcomes.ts";
import { oneClient, virtualWorld, watch } from "../../support/virtual-client.ts";

// Contention, outages, and what looks like both, in virtual time.

describe.each([
  [2, 2],
  [4, 2],
  [3, 3],
])("%i endpoints that %i contenders split", (count, contenders) => {
  /** Clients of which each acquires exactly its own share of the endpoints in the first round. */
  function split() {
    const world = virtualWorld({ count });
    const pause = () => new Promise<void>((resolve) => void world.runtime.timer(5, resolve));
    const clients = Array.from({ length: contenders }, (_, contender) => {
      // Pauses that differ, as random ones do.
      const client = world.client({ ttl: 60_000, wait: 30_000, backoff: () => 10 + 7 * contender });
      for (const [index, link] of client.links.entries()) {
        const isOwn = Math.floor(index / (count / contenders)) === contender;
        // Executed when its owner has it, and answered when all are executed.
        link.fate = () => (link.sent.length === 1 && !isOwn ? { before: pause, after: pause } : "delivered");
      }
      return client;
    });
    return { ...world, clients };
  }

  test("tryAcquire returns null to each, and nothing stays", async () => {
    const { runtime, clients, values } = split();
    const calls = clients.map(({ redlock }) => watch(redlock.tryAcquire("r")));
    await runtime.advance(200);
    expect(calls).toEqual(clients.map(() => ({ settled: true, value: null })));
    expect(values("r")).toEqual(new Array(count).fill(null));
  });

  test("each acquires the lock soon", async () => {
    const { runtime, clients, values } = split();
    const turns = clients.map(({ redlock }) => watch(redlock.using("r", (lock) => lock.verify())));
    // A partial grant that stayed would cost a ttl of 60 s.
    await runtime.advance(2_000);
    expect(turns.map(({ value }) => value)).toEqual(clients.map(() => true));
    for (const { events } of clients) expect(events.some(({ type }) => type === "contended")).toBe(true);
    expect(values("r")).toEqual(new Array(count).fill(null));
  });
});

test.each([[[]], [[2]]])("two endpoints down is an outage, held at the third or not: %j", async (held) => {
  const { put, values, redlock, links } = oneClient();
  put("r", held);
  for (const link of links.slice(0, 2)) link.fate = () => "refused";
  const { votes } = (await rejection(redlock.tryAcquire("r"))) as QuorumError;
  expect(votes.filter(({ outcome }) => outcome === "error")).toHaveLength(2);
  expect(values("r")[2]).toBe(held.length > 0 ? "somebody-else" : null);
  expect(await rejection(inspect(redlock, "r"))).toBeInstanceOf(QuorumError);
  expect(await rejection(forceRelease(redlock, "r"))).toBeInstanceOf(QuorumError);
});

test.each(["now", "monotonic"] as const)(
  "a lock that has expired on arrival is never returned, and is rolled back: the clock %s jumped",
  async (clock) => {
    for (const fencing of [false, true]) {
      const { links, ...world } = oneClient();
      let jump = 0;
      const runtime = { ...world.runtime, [clock]: () => world.runtime[clock]() + jump };
      for (const link of links) link.fate = () => (link.sent.length === 1 ? world.slow(50) : "delivered");
      const redlock = new Redlock({ endpoints: links, runtime, fencing, timeout: 20_000, ttl: 30_000 });
      const call = watch(redlock.tryAcquire("r"));
      await world.runtime.advance(10);
      expect(world.values("r")).not.toContain(null);
      // The process was frozen, or the wall clock stepped: the ttl may be over.
      jump = 29_800;
      await world.runtime.advance(40);
      expect(call.error).toBeInstanceOf(QuorumError);
      expect((call.error as Error).message).toContain("too late");
      expect(world.values("r")).toEqual([null, null, null]);
    }
  },
);

test("a slow endpoint keeps nobody waiting: neither an acquire nor an extension", async () => {
  const { redlock, links, ...world } = oneClient({ timeout: 20_000, ttl: 60_000 }, { count: 5 });
  for (const link of links.slice(0, 2)) link.fate = () => world.late(10_000);
  const lock = await redlock.acquire("r");
  expect(await lock.extend()).toBeGreaterThan(50_000);
  const released = watch(lock.release());
  await world.runtime.advance(30_000);
  expect(released.value).toBe(true);
  expect(world.values("r")).toEqual(new Array(5).fill(null));
});
