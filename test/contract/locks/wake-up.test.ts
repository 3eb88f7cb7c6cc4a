import { describe, expect, test } from "vitest";
import type { MemoryEndpoint } from "../../../local/src/memory/index.ts";
import { seededRandom } from "../../../local/src/memory/seeded-random.ts";
import { type Endpoint, type LockOptions, Redlock } from "../../../src/index.ts";
import { Semaphore } from "../../../src/sync/index.ts";
import { pubSub } from "../../../src/wake-up/index.ts";
import {
  reached,
  type VirtualWorld,
  virtualWorld,
  watch,
  wokenClient,
} from "../../support/virtual-client.ts";

// Waiters that are told by pub/sub, exact to the millisecond. Without a message they ask after 1 500 ms: random() is 0.5.

function stage(count = 1, dialect: "redis" | "upstash" = "redis"): VirtualWorld {
  return virtualWorld({ count, dialect });
}

const clientOf = (world: VirtualWorld, options: LockOptions = {}, endpoints = reached(world)) =>
  wokenClient(world, { backoff: { min: 10, max: 10 }, ...options }, endpoints);

/** The channel that somebody has subscribed to last. */
const channelAt = ({ log }: MemoryEndpoint) =>
  String(log.filter(({ command: [name] }) => name === "SUBSCRIBE").at(-1)?.command[1]);
const subscribers = (endpoint: MemoryEndpoint) =>
  (endpoint.engine.execute(["PUBSUB", "NUMSUB", channelAt(endpoint)]) as [string, number])[1];
const commandsOf = ({ log }: MemoryEndpoint) => log.map(({ command }) => String(command[0]));

/** A lock that is held, and a call that waits for it by a stream, and has asked once since it stands. */
async function waiting(world: VirtualWorld, options: LockOptions = {}, endpoints = reached(world)) {
  const held = await clientOf(world, options).acquire("a", { ttl: 60_000 });
  const controller = new AbortController();
  const call = watch(clientOf(world, options, endpoints).acquire("a", { signal: controller.signal }));
  await world.runtime.advance(20);
  const before = world.endpoints.map(({ log }) => log.length);
  const sent = (index = 0) => commandsOf(world.endpoints[index]!).slice(before[index]);
  return { held, call, controller, sent };
}

describe.each(["redis", "upstash"] as const)("a waiter in the %s dialect", (dialect) => {
  test("asks nothing while it waits, and acquires what is released at once", async () => {
    const world = stage(1, dialect);
    const [endpoint] = world.endpoints as [MemoryEndpoint];
    const { held, call, sent } = await waiting(world);
    expect(subscribers(endpoint)).toBe(1);
    await world.runtime.advance(1_400);
    expect(sent()).toEqual([]);
    expect(await held.release()).toBe(true);
    await world.runtime.advance(5);
    expect(call.value?.remaining()).toBeGreaterThan(0);
    const release = dialect === "redis" ? "EVAL" : "DELEX";
    expect(sent()).toEqual([release, "PUBLISH", "SET", "PUBLISH", "UNSUBSCRIBE"]);
    expect(subscribers(endpoint)).toBe(0);
  });
});

describe("a message that does not come", () => {
  test.each<[string, (world: VirtualWorld) => void]>([
    ["is lost", (world) => world.endpoints[0]!.faults.add({ fault: "drop-message" })],
    [
      "is never sent on a silent stream",
      (world) => world.endpoints[0]!.faults.add({ fault: "silent-stream" }),
    ],
    ["is late", (world) => world.endpoints[0]!.faults.add({ fault: "delay-message", ms: 20_000 })],
  ])("because it %s costs no more than the longest pause between polls", async (_, fault) => {
    const world = stage();
    fault(world);
    const { held, call } = await waiting(world);
    await held.release();
    await world.runtime.advance(1_400);
    expect(call.settled).toBe(false);
    await world.runtime.advance(100);
    expect(call.value).toBeDefined();
  });

  test("because the holder has died: with a fence, its ttl is known", async () => {
    const world = stage();
    await clientOf(world).acquire("a", { ttl: 1_700, fencing: true });
    const call = watch(clientOf(world).acquire("a", { fencing: true }));
    await world.runtime.advance(1_690);
    expect(call.settled).toBe(false);
    await world.runtime.advance(30);
    expect(call.value?.fence).toBeGreaterThan(0);
  });
});

describe("a stream that ends", () => {
  test("is followed by one at another endpoint, which looks again", async () => {
    const world = stage(3);
    world.endpoints[0]!.faults.add({ fault: "cut-stream", ms: 500 });
    const { held, call } = await waiting(world);
    expect(world.endpoints.map((endpoint) => subscribers(endpoint))).toEqual([1, 0, 0]);
    await world.runtime.advance(600);
    expect(world.endpoints.map((endpoint) => subscribers(endpoint))).toEqual([0, 1, 0]);
    await held.release();
    await world.runtime.advance(20);
    expect(call.value).toBeDefined();
  });

  test.each<[string, Partial<Endpoint>]>([
    ["refuses it", { subscribe: () => Promise.reject(new Error("HTTP 404")) }],
    ["never answers", { subscribe: () => new Promise(() => undefined) }],
    ["answers with garbage without end", { subscribe: async () => endless("x".repeat(5_000)) }],
    ["answers with another page", { subscribe: async () => ended("<html>busy</html>\n") }],
  ])("an endpoint that %s is left for the next one", async (_, change) => {
    const world = stage(3);
    const { held, call } = await waiting(
      world,
      {},
      reached(world, (_endpoint, index) => (index === 0 ? change : {})),
    );
    await world.runtime.advance(200);
    expect(subscribers(world.endpoints[1]!)).toBe(1);
    await held.release();
    await world.runtime.advance(20);
    expect(call.value).toBeDefined();
  });
});

/** A stream of one text, again and again. */
function endless(text: string): ReadableStream<Uint8Array> {
  return new ReadableStream({ pull: (controller) => controller.enqueue(new TextEncoder().encode(text)) });
}

function ended(text: string): ReadableStream<Uint8Array> {
  return new Response(text).body!;
}

test("a release of several resources tells those that wait for any of them", async () => {
  const world = stage();
  const held = await clientOf(world).acquire(["a", "b"]);
  const calls = [watch(clientOf(world).acquire("b")), watch(clientOf(world).acquire(["c", "a"]))];
  await world.runtime.advance(20);
  await held.release();
  await world.runtime.advance(20);
  expect(calls.map(({ value }) => value?.resources)).toEqual([["b"], ["c", "a"]]);
});

test.each([
  [",", "Upstash's streams have commas of their own"],
  ["\n", "it would end the line of a stream"],
  ["\r", "it would end the line of a stream"],
])("%j in a name wakes waiters, too: %s", async (character) => {
  const world = stage();
  const options = { prefix: `a${character}b` };
  const resource = `c${character}d`;
  const held = await clientOf(world, options).acquire(resource);
  const call = watch(clientOf(world, options).acquire(resource));
  await world.runtime.advance(15);
  expect(channelAt(world.endpoints[0]!)).not.toContain(character);
  await held.release();
  await world.runtime.advance(1);
  expect(call.value).toBeDefined();
});

describe("waiters to whom each request takes 10 ms", () => {
  /** So many waiters for the permits of a semaphore, which are released after a while. */
  async function crowd(count: number, limit: number) {
    const world = stage();
    const { runtime } = world;
    const [endpoint] = world.endpoints as [MemoryEndpoint];
    const far = reached(world, (near) => ({
      send: async (command, signal) => {
        await runtime.sleep(10);
        return near.send(command, signal);
      },
    }));
    const acquire = (seed: number) => {
      const options = { endpoints: far, wait: 60_000, ttl: 60_000, wakeUp: pubSub };
      const own = { ...runtime, random: seededRandom(seed) };
      return new Semaphore(new Redlock({ ...options, runtime: own }), "a", { limit }).acquire();
    };
    const numbers = Array.from({ length: Math.max(count, limit) }, (_, index) => index);
    const held = await runtime.settle(Promise.all(numbers.slice(0, limit).map(acquire)));
    const calls = numbers.slice(0, count).map((index) => watch(acquire(100 + index)));
    await runtime.advance(4_000);
    const before = endpoint.log.length;
    for (const permit of held) void permit.release();
    const asked = () =>
      commandsOf(endpoint)
        .slice(before)
        .filter((name) => name.startsWith("EVAL")).length - limit;
    return { runtime, granted: () => calls.filter(({ value }) => value).length, asked };
  }

  test("ask at once, if they are alone", async () => {
    const { runtime, granted } = await crowd(1, 1);
    await runtime.advance(25);
    expect(granted()).toBe(1);
  });

  test.each([
    [1, 10],
    [8, 30],
  ])(
    "are 40, and if %i permits are released at once, fewer than %i ask for them, soon",
    async (limit, most) => {
      const { runtime, granted, asked } = await crowd(40, limit);
      await runtime.advance(60);
      expect(granted()).toBe(limit);
      expect(asked()).toBeLessThan(most);
    },
  );
});
