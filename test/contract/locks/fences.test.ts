import { expect, test } from "vitest";
import { LockHeldError, QuorumError } from "../../../src/index.ts";
import { rejection } from "../../support/outcomes.ts";
import { oneClient, type VirtualWorld } from "../../support/virtual-client.ts";

// Fences, and what else a script returns, in virtual time.

const counterKey = "redlock:fence:{r}";
const hour = 3_600_000;

function setCounter({ endpoints }: VirtualWorld, index: number, value: number): void {
  endpoints[index]!.engine.execute(["SET", counterKey, value, "PX", hour]);
}

const counters = ({ endpoints }: VirtualWorld) =>
  endpoints.map(({ engine }) => Number(engine.execute(["GET", counterKey])));

const counterTtls = ({ endpoints }: VirtualWorld) =>
  endpoints.map(({ engine }) => engine.execute(["PTTL", counterKey]));

test("a fence is the time in ms, and one more than the largest counter where that is larger; one round is enough", async () => {
  const { redlock, links, ...world } = oneClient({ fencing: true });
  const now = world.runtime.now();
  for (const fence of [now, now + 1, now + 2]) {
    const before = links.flatMap(({ sent }) => sent).length;
    const lock = await redlock.acquire("r");
    expect(lock.fence).toBe(fence);
    expect(links.flatMap(({ sent }) => sent).length - before).toBe(3);
    await lock.release();
  }
  expect(counters(world)).toEqual([now + 2, now + 2, now + 2]);
});

test("a fence that others have passed by before a quorum had it is not given out", async () => {
  const { redlock, links, ...world } = oneClient({ fencing: true, wait: 0 });
  const fence = world.runtime.now() + 10;
  setCounter(world, 0, fence - 1);
  // While the counters are raised to it, another client draws larger ones.
  const overtake = { before: () => [1, 2].map((index) => setCounter(world, index, fence + 5)) };
  for (const each of links) each.fate = (_, operation) => (operation() === "keep" ? overtake : "delivered");
  expect(await rejection(redlock.acquire("r"))).toBeInstanceOf(QuorumError);
  expect(links.flatMap((each) => each.operations())).toContain("keep");
});

test("the counters of a fence are renewed by each extension after which they could end too early", async () => {
  const { redlock, ...world } = oneClient({ fencing: true, ttl: 12 * hour, onEvent: undefined });
  const lock = await redlock.acquire("r");
  await world.runtime.advance(11 * hour);
  await lock.extend();
  expect(counterTtls(world)).toEqual(new Array(3).fill(37 * hour));
  await world.runtime.advance(hour);
  await lock.extend();
  expect(counterTtls(world)).toEqual(new Array(3).fill(36 * hour));
  await world.runtime.advance(1);
  const fence = lock.fence!;
  // A fence that another client has drawn at one endpoint only.
  setCounter(world, 0, fence + 5);
  await lock.extend();
  expect(counters(world)).toEqual([fence + 5, fence, fence]);
  expect(counterTtls(world)).toEqual(new Array(3).fill(48 * hour));
  expect(world.expiries("r")).toEqual(new Array(3).fill(12 * hour));
  await world.runtime.advance(11 * hour);
  await lock.extend(30 * hour);
  expect(counterTtls(world)).toEqual(new Array(3).fill(54 * hour));
});

test.each([
  [[1_000, 2_000, 3_000], 2_000],
  [[3_000, 1_000, 2_000], 2_000],
  [[3_000, 1_000, 0], 1_000],
  [[1_000, 2_000, 3_000, 4_000], 3_000],
  [[4_000, 2_000, 1_000, 3_000, 5_000], 3_000],
  [[500], 500],
])("the time until a held lock may be free is the time until a quorum is: %j", async (ttls, expected) => {
  const { redlock, put } = oneClient({ fencing: true, wait: 0 }, { count: ttls.length });
  for (const [index, ttl] of ttls.entries()) if (ttl > 0) put("r", [index], "somebody-else", ttl);
  const error = await rejection(redlock.acquire("r"));
  expect(error).toBeInstanceOf(LockHeldError);
  expect((error as LockHeldError).retryAfter).toBe(expected);
});
