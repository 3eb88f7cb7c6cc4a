import { describe, expect, test } from "vitest";
import { toleranceCheck } from "../../../src/webhooks/custom/index.ts";
import { WebhookVerificationError } from "../../../src/webhooks/index.ts";

// The bounds of a tolerance, to the millisecond.

const signedAt = 1_763_714_567_000;

test.each<[age: number, tolerance: number | undefined, accepted: boolean]>([
  [0, 1_000, true],
  [1_999, 1_000, true],
  [2_000, 1_000, false],
  [-1_000, 1_000, true],
  [-1_001, 1_000, false],
  [300_999, undefined, true],
  [301_000, undefined, false],
  [-300_000, undefined, true],
  [-300_001, undefined, false],
  // 1 500 ms: less than two whole seconds.
  [1_999, 1_500, true],
  [2_000, 1_500, false],
  // A broken clock.
  [NaN, Number.MAX_SAFE_INTEGER, false],
  [Infinity, Number.MAX_SAFE_INTEGER, false],
  [-Infinity, Number.MAX_SAFE_INTEGER, false],
])("a delivery signed %d ms ago, tolerance %s: accepted %s", (age, tolerance, accepted) => {
  const check = () => toleranceCheck("acme", { tolerance, now: () => signedAt + age })(signedAt);
  if (accepted) check();
  else expect(check).toThrow(WebhookVerificationError);
});

describe("where the sender signs how long it may be accepted, 10 s more are", () => {
  const check = toleranceCheck("acme", { now: () => signedAt });
  const from = (ms: number) => signedAt + ms;

  test.each([
    [from(-90_000), from(-10_000)],
    [from(10_000), from(90_000)],
    [0, from(1e12)],
  ])("from %d until %d", (time, until) => check(time, until));

  test.each([
    [
      from(-320_000),
      from(-20_000),
      "acme: signed too long ago: 20 s beyond its validity, and 10 s are allowed",
    ],
    [from(-90_000), from(-11_000), "too long ago: 11 s"],
    [from(11_000), from(90_000), "in the future: 11 s beyond its validity"],
    [from(90_000), from(-90_000), "acme"],
    [signedAt, NaN, "no time to compare"],
  ])("not from %d until %d", (time, until, message) => {
    expect(() => check(time, until)).toThrow(message);
  });
});
