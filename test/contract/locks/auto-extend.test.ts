import { describe, expect, test } from "vitest";
import type { AcquireOptions } from "../../../src/index.ts";
import type { Fate } from "../../support/link.ts";
import { oneClient } from "../../support/virtual-client.ts";

// Automatic extensions, in virtual time.

test("a lock that is extended automatically is extended from its acquire until its release, and by the ttl set by hand", async () => {
  const { runtime, redlock, events } = oneClient({ ttl: 1_000, autoExtend: true });
  const lock = await redlock.acquire("r");
  await runtime.advance(1_200);
  const extended = () => events.flatMap((event) => (event.type === "extended" ? [event.ttl] : []));
  expect(extended()).toEqual([1_000, 1_000]);
  await lock.extend(4_000);
  await runtime.advance(2_100);
  expect(extended()).toEqual([1_000, 1_000, 4_000, 4_000]);
  await lock.release();
  await runtime.advance(20_000);
  expect(extended()).toHaveLength(4);
  expect(runtime.pending).toBe(0);
});

/** A lock of 1 s that is extended automatically, and how many requests to extend it an endpoint got until it was lost. */
async function extendedUntilLost(options: AcquireOptions, fate: Fate = "delivered") {
  const { runtime, redlock, links } = oneClient({ ttl: 1_000, autoExtend: true });
  const { signal } = await redlock.acquire("r", options);
  for (const each of links) each.fate = () => fate;
  while (!signal.aborted) await runtime.advance(1);
  const sent = links[0]!.operations().filter((operation) => operation === "keep").length;
  const lostAt = runtime.elapsed;
  await runtime.advance(5_000);
  expect(runtime.pending).toBe(0);
  return { sent, lostAt, reason: (signal.reason as Error).message };
}

describe("automatic extensions before the end", () => {
  test("of locks with one ttl are sent at the same moments, whenever they were acquired", async () => {
    const { runtime, redlock, links } = oneClient({ ttl: 10_000, autoExtend: true }, { count: 1 });
    const moments: number[] = [];
    links[0]!.fate = (_, operation) => {
      if (operation() === "keep") moments.push(runtime.elapsed);
      return "delivered";
    };
    for (let count = 0; count < 100; count += 1) {
      await redlock.acquire(`r${count}`);
      await runtime.advance(50);
    }
    await runtime.advance(5_000);
    expect(moments.length).toBeGreaterThanOrEqual(100);
    expect(new Set(moments).size).toBeLessThan(40);
  });

  test.each([
    ["maxHold 700 ms", 700, { maxHold: 700 }],
    ["maxHold 3000 ms", 3_000, { maxHold: 3_000 }],
    ["deadline", 300, { deadline: 1_700_000_000_300 }],
    ["deadline", 3_300, { deadline: 1_700_000_003_300 }],
  ])("are few, and none outlasts a %s: %i", async (name, ms, options) => {
    const { sent, lostAt, reason } = await extendedUntilLost(options);
    // One at each half of the validity, which is 988 ms without any.
    expect(sent).toBeLessThanOrEqual(Math.ceil(ms / 494));
    expect(lostAt).toBeLessThanOrEqual(name === "deadline" ? ms : Math.max(988, ms));
    expect(reason).toContain(name);
  });

  test("are few where the last one, which is cut, fails again and again", async () => {
    const { sent } = await extendedUntilLost({ maxHold: 1_000, timeout: 5 }, "refused");
    // At half of what remains, and at least a 16th of the usual validity apart.
    expect(sent).toBeLessThanOrEqual(9);
  });

  test("that fail are tried again, and not in a tight loop", async () => {
    const { sent, lostAt } = await extendedUntilLost({}, "refused");
    expect(sent).toBeGreaterThan(1);
    expect(sent).toBeLessThan(8);
    expect(lostAt).toBeLessThanOrEqual(1_000);
  });
});
