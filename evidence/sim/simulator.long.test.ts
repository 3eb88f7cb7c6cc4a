import { expect, test } from "vitest";
import type { Assumption, Invariant } from "./assumptions.ts";
import { missingIn, reportsOf, violationsIn } from "./reports.ts";
import type { Theme } from "./scenario.ts";
import { simulate } from "./simulate.ts";

/** Seeds that once showed a defect, of the library or of a check, by theme. Some scenarios have changed since. */
const regressions: Readonly<Partial<Record<Theme, readonly (readonly [seed: number, defect: string])[]>>> = {
  locks: [
    [50, "two replays of a key differed: one returned a result that only a minority had"],
    [107, "the end of a lock was not reported: its timer had stood still with the process"],
    [578, "a key with two results, each stored by a minority, and the third endpoint silent"],
    [580, "a lock that was restored on an endpoint forgot an acquire request still on its way there"],
    [736, "the same, with several resources"],
    [1_324_700_631, "a clock jump during a shortened round made contention look like an outage"],
    [2_000_890, "two results of a key, each on a half of four endpoints, were both returned"],
    [2_001_509, "the same, again"],
    [10_002_052, "a result was uploaded again and again to endpoints that refuse it for its size"],
    [40_010_131, "a lock with a short ttl was extended at half of it, more often than a retry may come"],
    [40_012_897, "a plain acquire was executed after the receiver of a lock had released it"],
    [40_015_183, "the network executed again a result that an endpoint refuses for its size"],
    [40_047_657, "the first 2 ms of a freeze did not count, after the wall clock had been set back"],
    [40_054_722, "an automatic extension was executed again after a longer one by hand"],
    [40_065_261, "an acquire was executed late, and the release of the lock's receiver had got lost"],
    [40_069_938, "a fence fell where clocks drift and counters are kept for a short time"],
    [200_295, "the retention of a fence ended while the next holder waited, and its fence fell, as it may"],
    [40_063_450, "of two requests of a release the second was executed first, and it returned false"],
  ],
  "locked-runs": [
    [27, "a begin that was executed after the end of its run left lock and record for the rest of the lease"],
    [31, "a begin that another's record had refused was executed again, by the network"],
    [1_419, "no quorum had the result, and a late begin left the lock, as it may"],
    [11_607, "a run with a short lease was extended at half of it, more often than a retry may come"],
    [12_061, "a shorter extension was executed again, and the lock had been handed off after a longer one"],
    [10_719, "a result was uploaded again because the refusals for its size came too late"],
  ],
  sync: [
    [7_005_437, "a writer that had removed its announcement was refused because of its own hold"],
    [40_047_398, "two waiters of a fair lock were granted a part each, in turns, and neither was served"],
  ],
  debounce: [
    [
      10_000_547,
      "an announcement that nobody answered expired, and was made again after a later call had run",
    ],
    [49_000_659, "a timer that fires early by the client's slow clock fires earlier by the world's"],
  ],
  singleton: [
    [
      497,
      "an endpoint came back without its memory before announcements that a quorum had would have expired",
    ],
  ],
};

/** For each assumption, seeds at which what needs it breaks without it. Others are tried where these no longer do. */
const needs: readonly (readonly [Theme, Invariant, seed: number, without: readonly Assumption[]])[] = [
  ["locks", "mutual exclusion", 10, ["bounded drift"]],
  ["locks", "mutual exclusion", 66, ["absence after memory loss", "kept memory"]],
  ["locks", "mutual exclusion", 7, ["a clock that goes on"]],
  ["locks", "a stored result stands", 676, ["kept memory"]],
  ["locks", "fences outlive memory", 0, ["agreeing clocks", "kept memory"]],
  ["locks", "what is held stands", 87, ["single execution"]],
  ["locks", "rolled back stays rolled back", 146, ["bounded delay"]],
  ["semaphore", "one holder per slot", 7, ["bounded drift"]],
  ["once", "one run per interval", 2, ["bounded drift"]],
  ["read-write", "a writer is alone", 12, ["bounded drift"]],
  ["reentrant", "one owner at a time", 7, ["bounded drift"]],
  ["debounce", "a later call replaces it", 43, ["bounded drift"]],
];

// simulator.test.ts has those before, simulator.full.test.ts those after.
const [first, last] = [81, 240];

test(`seeds ${first} to ${last}: every invariant holds, and what is expected occurs`, {
  timeout: 900_000,
}, async () => {
  const count = last - first + 1;
  const all = await reportsOf(Array.from({ length: count }, (_, index) => first + index));
  expect(violationsIn(all)).toEqual([]);
  expect(all).toHaveLength(count);
  expect(missingIn(all)).toEqual([]);
  // Simulations without an assumption must show that it is needed.
  expect(all.some(({ excused }) => excused.length > 0)).toBe(true);
});

test.each(Object.entries(regressions))(
  "seeds of %s that once showed a defect pass",
  {
    timeout: 240_000,
  },
  async (work, seeds) => {
    const all = await reportsOf(
      seeds.map(([seed]) => seed),
      work as Theme,
    );
    expect(violationsIn(all, work as Theme)).toEqual([]);
    expect(all).toHaveLength(seeds.length);
  },
);

test.each(needs)(
  "of %s, %s needs what seed %i or another drops: %s",
  { timeout: 120_000 },
  async (work, invariant, recorded, without) => {
    const [assumption] = without;
    for (let seed = 0; seed < 600; seed += 1) {
      const { excused } = await simulate({ seed: seed || recorded, work, without });
      if (excused.some((one) => one.invariant === invariant && one.without.includes(assumption!))) return;
    }
    expect.fail("no seed shows it");
  },
);
