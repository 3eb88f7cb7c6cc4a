import { describe, expect, test } from "vitest";
import { leaseWithin, remainingRetention, retryAfter } from "../../../src/idempotency/run-request.ts";
import { resolveSettings } from "../../../src/lock/options.ts";
import { steppingRuntime } from "../../support/stepping-runtime.ts";

const runtime = steppingRuntime();
const now = runtime.now();
const settingsOf = (ttl: number, timeout = 100) =>
  resolveSettings({ endpoints: [], runtime }, { ttl, timeout });

describe("the ttl of a claim", () => {
  test.each([
    ["the lease, without a deadline", Infinity, 1_000],
    ["the lease, where the deadline is later", 900, 1_000],
    ["until the deadline, and one timeout more", 899, 999],
    ["at least that timeout where the deadline is now", 0, 100],
    ["whole ms, rounded up", 100.2, 201],
    ["1 ms where everything is over", -1_000, 1],
  ])("is %s", (_what, remaining, expected) => {
    expect(leaseWithin(settingsOf(1_000), remaining)).toBe(expected);
  });
});

describe("when to try again", () => {
  const of = (ttl: number, age: number) =>
    retryAfter(
      { settings: settingsOf(ttl), retention: 86_400_000 },
      { state: "pending", token: "t", startedAt: now - age, fingerprint: "-" },
    );

  test.each([
    ["when the other run's lease ends", 30_000, 12_000, 18_000],
    ["in a second at least", 30_000, 29_500, 1_000],
    ["in a second where its lease is long over", 30_000, 90_000, 1_000],
    ["after the lease, which is shorter", 500, 100, 500],
    ["after the lease at most, by clocks that differ", 30_000, -5_000, 30_000],
  ])("is %s", (_what, ttl, age, expected) => {
    expect(of(ttl, age)).toBe(expected);
  });
});

describe("what is left of a retention", () => {
  test.each([
    ["less the result's age", 20_000, 40_000],
    ["all of it, by a clock that is behind", -20_000, 60_000],
    ["whole ms, rounded down", 20_000.5, 39_999],
    ["a second at least", 59_500, 1_000],
    ["a second where it is over", 90_000, 1_000],
  ])("is %s", (_what, age, expected) => {
    const record = { state: "complete", token: "t", completedAt: now - age, fingerprint: "-" } as const;
    expect(remainingRetention({ settings: settingsOf(1_000), retention: 60_000 }, record)).toBe(expected);
  });
});
