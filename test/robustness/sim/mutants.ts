import type { Mutant } from "./mutant.ts";
import { holdingMutants } from "./mutants-holding.ts";
import { operatorMutants } from "./mutants-operators.ts";
import { roundMutants } from "./mutants-rounds.ts";
import { runMutants } from "./mutants-runs.ts";
import { syncMutants } from "./mutants-sync.ts";
import { wakeUpMutants } from "./mutants-wake-ups.ts";

/** Defects that the simulator must notice: one or a few of each kind. `npm run mutation` tries the others. */
export const mutants: readonly Mutant[] = [
  ...roundMutants,
  ...holdingMutants,
  ...runMutants,
  ...operatorMutants,
  ...syncMutants,
  ...wakeUpMutants,
];

/** Defects that the simulator cannot notice, or too rarely, and the tests that notice them. */
export const elsewhere: readonly { readonly defect: string; readonly seenBy: string }[] = [
  {
    defect: "binary and empty results are corrupted in the record (hono-idempotency)",
    seenBy: "test/contract/idempotency/engines/runs.test.ts: replays every value of JSON as it was",
  },
  {
    defect: "a key built of absent parts is shared by unrelated events (Powertools)",
    seenBy: "test/robustness/fuzz: the arguments of the idempotency layer",
  },
  {
    defect: "a release with an owner's token goes on retrying after it has returned, and ends a later hold",
    seenBy: "test/contract/locks/owner.test.ts: an answer that comes when the release has returned",
  },
  {
    defect:
      "the mark of an owner's hold stays the same when a third handle joins, and a late release ends that hold, too",
    seenBy: "test/contract/locks/owner.test.ts: also where another handle had joined before",
  },
  {
    defect: "a handoff forgets an unanswered shorter extension, which then cuts the receiver's validity",
    seenBy: "test/contract/locks/handoff.test.ts: the receiver does not rely on that endpoint",
  },
  {
    defect:
      "a handoff forgets an unanswered acquire request, and the receiver's release leaves no tombstone for it",
    seenBy: "test/contract/locks/handoff.test.ts: its release leaves a tombstone",
  },
  {
    defect: "two results of a key, each on a half of four endpoints, both count as decided",
    seenBy: "test/unit/idempotency/record.test.ts; the simulator notices it about once in 3 000 seeds",
  },
  {
    defect: "a short permit shortens the time for which the limit of a longer one is remembered",
    seenBy:
      "test/contract/sync/semaphore/rounds.test.ts: the limit is remembered as long as any permit of it; the simulator notices it less than once in 2 000 seeds",
  },
  {
    defect: "three arrive at a latch, each pair of them at another endpoint, and none checks once more",
    seenBy: "test/contract/sync/count-down-latch/schedules.test.ts: the last arrival returns that it is open",
  },
  {
    defect:
      "a waiter's ticket does not return with its rollback, and two waiters take turns in holding a part each",
    seenBy: "test/contract/sync/fair-lock/split.test.ts; the simulator noticed it once in 23 000 seeds",
  },
  {
    defect:
      "the locks that a begin takes after the end of its run are held, and nobody uses them, until the lease ends",
    seenBy:
      "test/contract/idempotency/locked-late.test.ts; the simulator noticed it twice in 1 150 seeds of runs with locks",
  },
  {
    defect:
      "a latch that an operator resets is deleted: a late earlier request arrives at the next one, or opens it",
    seenBy:
      "test/contract/sync/force-release.test.ts: a latch with a wrong count takes the right one then, and late requests do not count",
  },
  {
    defect: "a repeated confirmation prolongs an interval",
    seenBy:
      "test/contract/sync/scripts/interval.test.ts: a confirmation that comes again does not prolong the interval",
  },
  {
    defect: "a claim loops when the clock is too coarse for the last fraction of a ms",
    seenBy:
      "test/contract/sync/once/confirmation.test.ts: in the simulator a pause always ends later than it began",
  },
  {
    defect: "a ttl that is no integer is refused by Redis (@upstash/lock: extend(500))",
    seenBy: "test/robustness/fuzz: arguments are checked before anything is sent",
  },
];
