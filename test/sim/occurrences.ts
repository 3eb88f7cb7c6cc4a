import { type Assumption, assumptions, type Invariant, invariants } from "./assumptions.ts";
import { faultKinds } from "./scenario.ts";

/** What must have been seen at least once in a few hundred seeds: else nothing is shown about it. */
export const mustOccur: readonly string[] = [
  ...faultKinds,
  // faults of a kind that only some worlds have
  "endpoint's clock set",
  "restart with memory",
  "restart without memory",
  // the weather, and what comes of it
  "connection reset after execution",
  "connection reset before execution",
  "http error",
  "reply late",
  "reply lost",
  "request executed again",
  "request into a cut link",
  "request late",
  "request lost",
  "request overtaken",
  "request sent again by the client in between",
  "request to a silent endpoint",
  "request too large",
  // what calls came to
  "aborted",
  "barrier passed",
  "barrier: ARRIVALS_MISSING",
  "barrier: NO_QUORUM",
  "debounce ran",
  "debounce threw",
  "debounce: a later one",
  "debounce: no quorum",
  "died in the queue",
  "enter: no quorum",
  "enter: refused",
  "entered",
  "entered again",
  "extend: lost",
  "extend: no quorum",
  "extended",
  "granted",
  "held",
  "latch closed",
  "latch open",
  "latch: ARRIVALS_MISSING",
  "latch: NO_QUORUM",
  "ledger accepted",
  "ledger refused",
  "no quorum",
  "once ran",
  "once threw",
  "once: elsewhere",
  "once: lost",
  "once: no quorum",
  "permit granted",
  "permit: another limit",
  "permit: no quorum",
  "permit: refused",
  "queue: no quorum",
  "queue: refused",
  "read: no quorum",
  "read: refused",
  "reading",
  "release: gone",
  "release: no quorum",
  "released",
  "run executed",
  "run lost",
  "run mismatch",
  "run replayed",
  "run: result unavailable",
  "run: unstored, too-large",
  "run: unstored, unserializable",
  "run threw",
  "run: busy",
  "run: no quorum",
  "run: unstored",
  "served",
  "served in order",
  "using lost",
  "using returned",
  "using threw",
  "verified",
  "verified lost",
  "write: no quorum",
  "write: refused",
  "writing",
];

/** Of so many seeds each of them has to occur. */
export const enoughSeeds = 500;

/** Every assumption with each invariant that may break without it. Histories are only checked with all of them. */
export const allowed: readonly { readonly assumption: Assumption; readonly invariant: Invariant }[] =
  assumptions.flatMap((assumption) =>
    (Object.keys(invariants) as Invariant[])
      .filter((invariant) => invariant !== "linearizable")
      .filter((invariant) => (invariants[invariant] as readonly Assumption[]).includes(assumption))
      .map((invariant) => ({ assumption, invariant })),
  );
