import { describe, expect, test } from "vitest";
import type { AcquireOptions } from "../../../src/index.ts";
import { oneClient } from "../../support/virtual-client.ts";

// How long a holder may rely on its lock, and what tells it the end, in virtual time. Of a ttl of 1 s, 12 ms are drift.

const ttl = 1_000;
const start = 1_700_000_000_000;
const validity = 988;

async function held(options: AcquireOptions = {}) {
  const world = oneClient({ ttl });
  const lock = await world.redlock.acquire("r", options);
  return { ...world, lock };
}

describe("the signal", () => {
  test.each<[what: string, options: AcquireOptions, extended: number | undefined, name: string]>([
    ["the ttl", {}, undefined, "ttl 1000 ms"],
    // Seconds are the usual mistake.
    ["a short ttl", { ttl: 30 }, undefined, "ttl 30 ms: 30 is 30 ms; did you mean 30_000?"],
    ["the ttl that was requested last", {}, 2_000, "ttl 2000 ms"],
    ["the deadline", { deadline: start + 400 }, undefined, "deadline"],
    ["the deadline that cuts an extension", { deadline: start + 1_500 }, 2_000, "deadline"],
  ])("names what has ended the lock: %s", async (_what, options, extended, name) => {
    const { lock, runtime } = await held(options);
    if (extended) await lock.extend(extended);
    const { signal } = lock;
    // As after a freeze, in which every limit passes.
    await runtime.advance(10_000);
    expect((signal.reason as Error).message).toContain(name);
  });

  test.each([0, 0.2, 0.5])("aborts at the end, not before, although timers fire early: %d", async (early) => {
    const { lock, runtime } = await held();
    runtime.early = early;
    const { signal } = lock;
    await runtime.advance(validity - 1);
    expect(signal.aborted).toBe(false);
    await runtime.advance(2);
    expect(signal.aborted).toBe(true);
  });

  test("is aborted already where it is first read after the end", async () => {
    const { lock, runtime } = await held();
    await runtime.advance(validity);
    expect(lock.signal.aborted).toBe(true);
  });
});
