import { expect, test } from "vitest";
import { needs } from "./needs.ts";
import { mustOccur } from "./occurrences.ts";
import { describeViolations, occurredIn, reportsOf } from "./reports.ts";
import { simulate } from "./simulate.ts";

// So many that the rarest event, `inspected: undecided`, occurs.
const last = 1_400;

test(`seeds 1 to ${last}: every invariant holds and is checked, and every event occurs`, {
  timeout: 900_000,
}, async () => {
  const all = await reportsOf(Array.from({ length: last }, (_, index) => index + 1));
  expect(all.flatMap(describeViolations)).toEqual([]);
  expect(all).toHaveLength(last);
  const occurred = occurredIn(all);
  expect(mustOccur.filter((event) => !occurred.has(event))).toEqual([]);
  // Simulations without an assumption must show that it is needed.
  expect(all.some(({ excused }) => excused.length > 0)).toBe(true);
});

test.each(needs)(
  "at seed %i of %s, or another, %s needs %s",
  { timeout: 120_000 },
  async (recorded, work, invariant, without) => {
    const [assumption] = without;
    const breaks = async (seed: number) => {
      const { excused } = await simulate({ seed, work, without });
      return excused.some((one) => one.invariant === invariant && one.without.includes(assumption!));
    };
    let seed = recorded;
    for (let other = 1; !(await breaks(seed)); other += 1) {
      expect(other, "a seed that shows it").toBeLessThan(600);
      seed = other;
    }
    if (seed !== recorded)
      console.warn(`${invariant} needs ${assumption}: now at seed ${seed} of ${work}, not ${recorded}`);
  },
);
