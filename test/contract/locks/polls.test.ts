import { describe, expect, test } from "vitest";
import { type AcquireOptions, EndpointError, Redlock, type RedlockEvent } from "../../../src/index.ts";
import { oneClient, reached, type VirtualWorld, virtualWorld, watch } from "../../support/virtual-client.ts";

// What a waiter that polls asks, and what it makes of the holders that it sees, exact to the millisecond: requests take no
// time, and random() is 0.5.

const backoff = { min: 10, max: 1_000 };
const contendedIn = (events: readonly RedlockEvent[]) => events.filter((event) => event.type === "contended");

/** Waits while others hold `a`: these, the next one after each of its rounds. The time and the pause of each round. */
async function pausesWhile(
  world: VirtualWorld,
  holders: string[],
  { resources = "a", ...options }: AcquireOptions & { resources?: string | string[] } = {},
): Promise<(readonly [elapsed: number, pause: number])[]> {
  const { redlock, events } = world.client({ backoff, wait: 60_000 });
  const all = [...world.endpoints.keys()];
  const controller = new AbortController();
  const put = (holder: string) => world.put("a", all, holder);
  put(holders[0]!);
  const call = watch(redlock.acquire(resources, { ...options, signal: controller.signal }));
  for (const next of [...holders.slice(1), undefined]) {
    await world.runtime.advance(0);
    const pause = contendedIn(events).at(-1)!.retryIn!;
    if (next === undefined) break;
    put(next);
    await world.runtime.advance(pause);
  }
  controller.abort();
  await world.runtime.advance(0);
  expect(call.settled).toBe(true);
  return contendedIn(events).map(({ elapsed, retryIn }) => [elapsed, retryIn!]);
}

describe.each([1, 3])("with %i endpoints, a waiter sees when the holder changes", (count) => {
  const holders = ["tfirst", "tfirst", "tfirst", "tsecond", "tsecond", "tthird"];

  test("of a plain lock, from its second round", async () => {
    const rounds = await pausesWhile(virtualWorld({ count }), holders);
    expect(rounds).toEqual([
      [0, 10],
      [10, 20],
      [30, 30],
      // 50 ms after it has first seen a holder.
      [60, expect.closeTo(0.7 * 50)],
      [expect.closeTo(95), expect.closeTo(0.7 * 85)],
      [expect.closeTo(154.5), expect.closeTo(0.7 * (144.5 / 2) * Math.cbrt(2))],
    ]);
  });

  test.each<[what: string, options: AcquireOptions & { resources?: string[] }]>([
    ["a lock with a fence", { fencing: true }],
    ["several resources", { resources: ["a", "b"] }],
  ])("of %s, from its first", async (_what, options) => {
    const rounds = await pausesWhile(virtualWorld({ count }), holders, options);
    expect(rounds.slice(0, 4)).toEqual([
      [0, 10],
      [10, 15],
      [25, 22.5],
      [47.5, expect.closeTo(0.7 * 47.5)],
    ]);
  });
});

test("a waiter that finds parts of several holders pauses as if it saw none", async () => {
  const { redlock, events, ...world } = oneClient({ backoff, wait: 60_000 });
  world.put("a", [0, 1, 2], "tfirst");
  const call = watch(redlock.acquire("a"));
  await world.runtime.advance(10);
  for (const index of [0, 1, 2]) world.put("a", [index], `tpart${index}`);
  await world.runtime.advance(20);
  // By jitter between 10 and 60 ms; not 0.7 times 20 ms, nor half as long again.
  expect(contendedIn(events).map(({ retryIn }) => retryIn)).toEqual([10, 20, 35]);
  expect(call.settled).toBe(false);
});

describe("what a plain lock asks", () => {
  const holder = "t".padEnd(33, "5");
  const ask = (looks: boolean) => [
    "SET",
    "redlock:lock:{a}",
    expect.any(String),
    "NX",
    ...(looks ? ["GET"] : []),
    "PX",
    10_000,
  ];

  test("first whether it is free, and then also who has it, with as many commands", async () => {
    const { redlock, links, events, ...world } = oneClient({ wait: 20 }, { count: 1 });
    world.put("a", [0], holder);
    const call = watch(redlock.acquire("a"));
    await world.runtime.advance(100);
    expect(links[0]!.sent).toEqual([ask(false), ask(true), ask(true)]);
    expect(events.at(-1)).toMatchObject({ rounds: 3, error: call.error });
  });

  test("only whether it is free, where it does not wait", async () => {
    const { redlock, links, ...world } = oneClient({}, { count: 1 });
    world.put("a", [0], holder);
    expect(await redlock.tryAcquire("a")).toBeNull();
    expect(links[0]!.sent).toEqual([ask(false)]);
  });

  test("only whether it is free, where Redis before 7.0 has refused the other once", async () => {
    const world = virtualWorld({ count: 1 });
    world.put("a", [0], holder);
    const sent: unknown[] = [];
    const endpoints = reached(world, (endpoint) => ({
      send: async (command, signal) => {
        sent.push(command);
        if (command.includes("NX") && command.includes("GET")) {
          throw new EndpointError(endpoint.name, "redis", "ERR syntax error");
        }
        return endpoint.send(command, signal);
      },
    }));
    const { runtime } = world;
    const redlock = new Redlock({ endpoints, runtime, wait: 20, backoff: { min: 10, max: 10 } });
    const calls = [1, 2].map(async () => watch(redlock.acquire("a")));
    await runtime.advance(100);
    for (const call of await Promise.all(calls)) expect(call.error).toMatchObject({ code: "LOCK_HELD" });
    // One of the calls finds out for both, and asks again in the same round.
    expect(sent).toEqual([false, false, true, false, false, false, false].map(ask));
  });
});
