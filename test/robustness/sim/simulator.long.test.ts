import { expect, test } from "vitest";
import type { Assumption, Invariant } from "./assumptions.ts";
import { mustOccur } from "./occurrences.ts";
import { describeViolations, occurredIn, reportsOf } from "./reports.ts";
import type { Theme } from "./scenario.ts";
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

/** What breaks without an assumption, with the seed that shows it. docs/internals/evidence.md lists the same seeds. */
const needs: [seed: number, work: Theme, invariant: Invariant, without: Assumption[]][] = [
  [10, "locks", "mutual exclusion", ["bounded drift"]],
  [2, "locks", "a stored result stands", ["kept memory"]],
  [2, "locks", "replays agree", ["kept memory"]],
  [430, "locks", "rolled back stays rolled back", ["kept memory"]],
  [10, "locks", "mutual exclusion", ["absence after memory loss", "kept memory"]],
  [366, "locks", "one handler at a time", ["absence after memory loss", "kept memory"]],
  [75, "locks", "mutual exclusion", ["a clock that goes on"]],
  [118, "locks", "fences increase", ["kept memory", "agreeing clocks"]],
  [118, "locks", "fences outlive memory", ["agreeing clocks", "kept memory"]],
  [12, "locks", "nothing is abandoned", ["single execution"]],
  [19, "locks", "refusals are true", ["single execution"]],
  [50, "locks", "mutual exclusion", ["single execution"]],
  [3, "locks", "rolled back stays rolled back", ["single execution"]],
  [68, "locks", "a quorum decides", ["single execution"]],
  [90, "locks", "what is held stands", ["single execution"]],
  [31, "locks", "what is held stands", ["bounded drift"]],
  [8, "locks", "what is held stands", ["a clock that goes on"]],
  [1324701149, "locks", "rolled back stays rolled back", ["bounded delay"]],
  [7, "semaphore", "one holder per slot", ["bounded drift"]],
  [7, "semaphore", "permits within the limit", ["bounded drift"]],
  [30, "semaphore", "one holder per slot", ["absence after memory loss", "kept memory"]],
  [143, "semaphore", "one holder per slot", ["a clock that goes on"]],
  [143, "semaphore", "permits within the limit", ["a clock that goes on"]],
  [3, "once", "one run per interval", ["bounded drift"]],
  [93, "once", "one run per interval", ["absence after memory loss", "kept memory"]],
  [331, "once", "one run per interval", ["a clock that goes on"]],
  [12, "read-write", "a writer is alone", ["bounded drift"]],
  [20, "read-write", "a writer is alone", ["absence after memory loss", "kept memory"]],
  [9, "read-write", "holds survive", ["a clock that goes on"]],
  [9, "reentrant", "one owner at a time", ["bounded drift"]],
  [30, "reentrant", "one owner at a time", ["absence after memory loss", "kept memory"]],
  [148, "reentrant", "one owner at a time", ["a clock that goes on"]],
  [2, "fair", "mutual exclusion", ["bounded drift"]],
  [2, "barrier", "generations follow", ["kept memory"]],
  [68, "debounce", "a later call replaces it", ["bounded drift"]],
  [93, "debounce", "a later call replaces it", ["absence after memory loss", "kept memory"]],
  [165, "debounce", "a later call replaces it", ["a clock that goes on"]],
];

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
