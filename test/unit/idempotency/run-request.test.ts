import { describe, expect, test } from "vitest";
import { remainingRetention, retryAfter } from "../../../src/idempotency/run-request.ts";
import { resolveSettings } from "../../../src/lock/options.ts";
import { steppingRuntime } from "../../support/stepping-runtime.ts";

const runtime = steppingRuntime();
const now = runtime.now();
const settingsOf = (ttl: number) => resolveSettings({ endpoints: [], runtime }, { ttl });

describe("when to try again", () => {
  const of = (ttl: number, age: number) =>
    retryAfter(
      { settings: settingsOf(ttl), retention: 86_400_000 },
      { state: "pending", token: "t", at: now - age, fingerprint: "-" },
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
    const record = { state: "complete", token: "t", at: now - age, fingerprint: "-" } as const;
    expect(remainingRetention({ settings: settingsOf(1_000), retention: 60_000 }, record)).toBe(expected);
  });
});
