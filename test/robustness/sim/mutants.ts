import type { Mutant } from "./mutant.ts";
import { holdingMutants } from "./mutants-holding.ts";
import { idempotencyMutants } from "./mutants-idempotency.ts";
import { keepingMutants } from "./mutants-keeping.ts";
import { roundMutants } from "./mutants-rounds.ts";
import { syncMutants } from "./mutants-sync.ts";

/** Every defect that the simulator must notice. */
export const mutants: readonly Mutant[] = [
  ...roundMutants,
  ...holdingMutants,
  ...keepingMutants,
  ...idempotencyMutants,
  ...syncMutants,
];

/** Defects that the simulator cannot see by its nature, and what looks for them instead. */
export const elsewhere: readonly { readonly defect: string; readonly seenBy: string }[] = [
  {
    defect: "binary and empty results are corrupted on their way through the record (hono-idempotency)",
    seenBy:
      "test/contract/idempotency/idempotency.test.ts: results are text of a codec, base64 where it must be",
  },
  {
    defect: "a key built of absent parts is shared by unrelated events (Powertools)",
    seenBy: "test/fuzz: the arguments of the idempotency layer",
  },
  {
    defect:
      "a release with an owner's token goes on asking after it has returned, and ends what is acquired since",
    seenBy: "test/contract/locks/owner.test.ts: an answer that comes when the release has returned",
  },
  {
    defect:
      "the mark of an owner's hold stays the same when a third handle joins, and a late release ends that, too",
    seenBy: "test/contract/locks/owner.test.ts: also where another handle had joined before",
  },
  {
    defect:
      "a hand-over forgets a shorter extension that is unanswered, and it cuts what the receiver relies on",
    seenBy: "test/contract/locks/handoff.test.ts: the receiver does not rely on that endpoint",
  },
  {
    defect:
      "a hand-over forgets a take that is unanswered, and the receiver's release leaves no tombstone for it",
    seenBy: "test/contract/locks/handoff.test.ts: its release leaves a tombstone",
  },
  {
    defect: "inspecting an unreachable Redis says that nobody holds the lock (redlock-universal: isLocked)",
    seenBy: "test/contract: inspect with too few endpoints is a QuorumError",
  },
  {
    defect: "two results of a key, each on a half of four endpoints, both count as decided",
    seenBy: "test/unit/idempotency/record.test.ts; the simulator sees it about once in 3 000 seeds",
  },
  {
    defect: "a short permit cuts the time for which the limit of a longer one stands",
    seenBy:
      "test/contract/sync/semaphore.test.ts: the memory of its limit; the simulator sees it less than once in 2 000 seeds",
  },
  {
    defect: "of three that arrive at a latch in pairs, each pair at another endpoint, nobody looks once more",
    seenBy:
      "test/contract/sync/count-down-latch-schedules.test.ts: whoever arrives last is told that it is open",
  },
  {
    defect:
      "a latch that an operator resets is deleted: a late request of before arrives at the next one, or opens it",
    seenBy:
      "test/contract/sync/force-release.test.ts: no late request counts for the next, an open one is closed and stays so",
  },
  {
    defect: "an interval is prolonged by a confirmation that is executed again",
    seenBy:
      "test/contract/sync/interval.test.ts: a confirmation that comes again does not prolong the interval",
  },
  {
    defect: "a claim loops when a clock is too coarse for the last part of a ms",
    seenBy: "test/contract/sync/once.test.ts: in the simulator a pause always ends later than it began",
  },
  {
    defect: "a ttl that is no integer is refused by Redis (@upstash/lock: extend(500))",
    seenBy: "test/fuzz: arguments, checked before anything is sent",
  },
];
