import { createHmac } from "node:crypto";
import { describe, expect, it } from "vitest";
import { slack, type ToleranceOptions } from "../../../src/webhooks/index.ts";

// The bounds of a tolerance, to the millisecond. Slack signs whole seconds.

const secret = "8f742231b10e8888";
const signedAt = 1_763_714_567_000;

async function outcome(options: ToleranceOptions): Promise<string> {
  const time = String(signedAt / 1_000);
  const signature = createHmac("sha256", secret).update(`v0:${time}:{}`).digest("hex");
  const headers = { "x-slack-signature": `v0=${signature}`, "x-slack-request-timestamp": time };
  const request = new Request("https://example.com", { method: "POST", headers });
  return slack({ secret, ...options })
    .verify(request, new TextEncoder().encode("{}"))
    .then(
      () => "accepted",
      (error: { reason: string }) => error.reason,
    );
}

const refused = "outside-tolerance";

describe("a tolerance", () => {
  it.each<[age: number, tolerance: number | undefined, expected: string]>([
    [0, 1_000, "accepted"],
    [1_999, 1_000, "accepted"],
    [2_000, 1_000, refused],
    [-1_000, 1_000, "accepted"],
    [-1_001, 1_000, refused],
    [300_999, undefined, "accepted"],
    [301_000, undefined, refused],
    [-300_000, undefined, "accepted"],
    [-300_001, undefined, refused],
    // 1 500 ms: less than two whole seconds.
    [1_999, 1_500, "accepted"],
    [2_000, 1_500, refused],
  ])("of a delivery signed %d ms ago, tolerance %s: %s", async (age, tolerance, expected) => {
    expect(await outcome({ tolerance, now: () => signedAt + age })).toBe(expected);
  });

  it("refuses every delivery where the clock gives no number", async () => {
    for (const broken of [NaN, Infinity, -Infinity]) {
      expect(await outcome({ now: () => broken, tolerance: Number.MAX_SAFE_INTEGER })).toBe(refused);
    }
  });

  it("is an integer of at least 1 000", async () => {
    for (const tolerance of [1_000, Number.MAX_SAFE_INTEGER]) {
      expect(() => slack({ secret, tolerance })).not.toThrow();
    }
    for (const tolerance of [0, 999, 1_000.5, 2 ** 53, NaN, Infinity, "300000", null]) {
      expect(() => slack({ secret, tolerance: tolerance as number })).toThrow(RangeError);
    }
  });
});
