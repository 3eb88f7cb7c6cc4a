import { describe, expect, test } from "vitest";
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

describe("a fence", () => {
  test("is the time in ms, and one more than the largest counter where that is larger; one round is enough", async () => {
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

  test("that only a part of the quorum has drawn is raised on a quorum, in a second round", async () => {
    const { redlock, links, events, ...world } = oneClient({ fencing: true });
    const ahead = world.runtime.now() + 50 * hour;
    setCounter(world, 0, ahead);
    links[2]!.fate = () => "refused";
    const lock = await redlock.acquire("r");
    expect(lock.fence).toBe(ahead + 1);
    expect(counters(world).slice(0, 2)).toEqual([ahead + 1, ahead + 1]);
    expect(events.find(({ type }) => type === "acquired")).toMatchObject({ rounds: 1, fence: ahead + 1 });
    expect(links.map(({ sent }) => sent.length)).toEqual([2, 2, 2]);
    expect(world.expiries("r")[0]).toBe(10_000);
  });

  test("that cannot be raised is not returned, and the lock is rolled back", async () => {
    const { redlock, links, ...world } = oneClient({ fencing: true, wait: 0 });
    setCounter(world, 0, world.runtime.now() + hour);
    links[2]!.fate = () => "refused";
    links[1]!.fate = (_, operation) => (operation() === "keep" ? "reply lost" : "delivered");
    expect(await rejection(redlock.acquire("r"))).toBeInstanceOf(QuorumError);
    expect(world.values("r")).toEqual([null, null, null]);
  });
});

describe("the counters of a fence", () => {
  test("are renewed by each extension after which they could end too early", async () => {
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
});

describe("the time until a held lock may be free", () => {
  const after = async (ttls: readonly number[], { silent = 0 } = {}) => {
    const { redlock, links, ...world } = oneClient(
      { fencing: true, wait: 0 },
      { count: ttls.length + silent },
    );
    for (const [index, ttl] of ttls.entries()) if (ttl > 0) world.put("r", [index], "somebody-else", ttl);
    for (const each of links.slice(ttls.length)) each.fate = () => "refused";
    const error = await rejection(redlock.acquire("r"));
    expect(error).toBeInstanceOf(LockHeldError);
    return (error as LockHeldError).retryAfter;
  };

  test.each([
    [[1_000, 2_000, 3_000], 2_000],
    [[3_000, 1_000, 2_000], 2_000],
    [[3_000, 1_000, 0], 1_000],
    [[1_000, 2_000, 3_000, 4_000], 3_000],
    [[4_000, 2_000, 1_000, 3_000, 5_000], 3_000],
    [[500], 500],
  ])("is the time until a quorum is: %j", async (ttls, expected) => {
    expect(await after(ttls)).toBe(expected);
  });
});
