import { describe, expect, test } from "vitest";
import { type Answer, type RoundResult, tally } from "../../../src/quorum/tally.ts";

describe("tally", () => {
  /** The result of all answers, from the definition. */
  function definedResult(granted: number, refused: number, count: number): RoundResult {
    if (granted > count / 2) return "granted";
    // Even if every endpoint that failed had granted, there would have been no quorum.
    return count - refused <= count / 2 ? "refused" : "unavailable";
  }

  /** Every result that the pending answers can still lead to. */
  function reachable(granted: number, refused: number, pending: number, count: number): Set<RoundResult> {
    const results = new Set<RoundResult>();
    for (let more = 0; more <= pending; more += 1) {
      for (let less = 0; more + less <= pending; less += 1) {
        results.add(definedResult(granted + more, refused + less, count));
      }
    }
    return results;
  }

  /** So many answers of each kind; the others have failed. Endpoints refuse by `held` or `lost`. */
  function answersOf(granted: number, refused: number, pending: number, count: number) {
    const refusal = (index: number): Answer => ({ outcome: index % 2 ? "held" : "lost" });
    return Array.from({ length: count }, (_, index) => {
      if (index < granted) return { outcome: "granted" } as const;
      if (index < granted + refused) return refusal(index);
      return index < granted + refused + pending ? undefined : ({ outcome: "error" } as const);
    });
  }

  test.each([1, 2, 3, 4, 5, 6, 7])("of %i has a result once no answer can change it", (count) => {
    let cases = 0;
    for (let granted = 0; granted <= count; granted += 1) {
      for (let refused = 0; granted + refused <= count; refused += 1) {
        for (let pending = 0; granted + refused + pending <= count; pending += 1) {
          const open = reachable(granted, refused, pending, count);
          const expected = open.size === 1 ? [...open][0] : undefined;
          const answers = answersOf(granted, refused, pending, count);
          expect(tally(answers.map((answer) => ({ answer }))), `${granted} ${refused} ${pending}`).toBe(
            expected,
          );
          cases += 1;
        }
      }
    }
    expect(cases).toBe(((count + 1) * (count + 2) * (count + 3)) / 6);
  });
});
