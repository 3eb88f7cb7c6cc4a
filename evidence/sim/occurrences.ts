import { type Assumption, assumptions, type Invariant, invariants } from "./assumptions.ts";
import { garbledReplies } from "./http-link.ts";
import { faultKinds } from "./scenario.ts";
import { checkedName } from "./world.ts";

const everyInvariant = Object.keys(invariants) as Invariant[];

/** Events that must occur in enough seeds, and every invariant must be checked there: else they are not tested. */
export const mustOccur: readonly string[] = [
  ...faultKinds,
  // faults that only some worlds have
  "scripts forgotten",
  "null without an execution",
  "endpoint's clock set",
  "restart with memory",
  "restart without memory",
  // faults of single messages
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
  ...garbledReplies,
  // faults of streams and of their messages
  "message doubled",
  "message forged",
  "message into a cut link",
  "message late",
  "message lost",
  "message on a silent stream",
  "stream confirmed early",
  "stream cut",
  "stream dead without a sign",
  "stream lost with its endpoint",
  "subscription garbled",
  "subscription lost",
  "subscription never answered",
  "subscription refused",
  "subscription to a silent endpoint",
  // outcomes of calls
  "aborted",
  "barrier passed",
  "barrier: aborted",
  "barrier: ARRIVALS_MISSING",
  "barrier: NO_QUORUM",
  "debounce ran",
  "debounce threw",
  "debounce: replaced",
  "debounce: lost",
  "debounce: unavailable",
  "died in the queue",
  "enter: aborted",
  "enter: unavailable",
  "enter: refused",
  "entered",
  "entered again",
  "address refused",
  "behind a gateway",
  "flight computed",
  "flight failed",
  "flight shared",
  "forget: nothing there",
  "forget: unavailable",
  "forgotten",
  "free: nothing there",
  "free: unavailable",
  "freed",
  "inspect: unavailable",
  "inspected: complete",
  "inspected: free",
  "inspected: held",
  "inspected: none",
  "inspected: pending",
  "inspected: undecided",
  "extend: lost",
  "extend: unavailable",
  "extended",
  "granted",
  "handed off",
  "handed off again",
  "handed off twice",
  "handed on",
  "held",
  "latch closed",
  "latch open",
  "latch: aborted",
  "latch: ARRIVALS_MISSING",
  "latch: NO_QUORUM",
  "message read",
  "stream stood",
  "ledger accepted",
  "ledger refused",
  "unavailable",
  "once ran",
  "once threw",
  "once: elsewhere",
  "once: lost",
  "once: unavailable",
  "permit granted",
  "permit: another limit",
  "permit: aborted",
  "permit: unavailable",
  "permit: refused",
  "queue: aborted",
  "queue: unavailable",
  "queue: refused",
  "read: aborted",
  "read: unavailable",
  "read: refused",
  "reading",
  "release: gone",
  "release: unavailable",
  "released",
  "run: dead key",
  "run executed",
  "run lost",
  "run mismatch",
  "run replayed",
  "run: result unavailable",
  "run threw",
  "run unavailable",
  "run: busy",
  "run: locked",
  "run with locks",
  "run: omitted, too-large",
  "run: omitted, unserializable",
  "run: unstored, no-quorum",
  "run: unstored, too-large",
  "run: unstored, unserializable",
  "served",
  "served in order",
  "singleton ran",
  "singleton: aborted",
  "singleton: cancelled",
  "singleton: held",
  "singleton: left",
  "singleton: lost",
  "singleton: unavailable",
  "using lost",
  "using returned",
  "using threw",
  "verified",
  "verified lost",
  "write: aborted",
  "write: unavailable",
  "write: refused",
  "writing",
  ...everyInvariant.map(checkedName),
];

/** An event that is expected in so many seeds of a run must occur in it. One run in e^20 lacks it by chance. */
const expected = 20;

/**
 * The events that should have occurred in a run of the default themes, and did not.
 *
 * @param seeds the number of seeds
 * @param occurred the events that did occur
 * @param shares the share of seeds in which an event occurs, by its name: `shares.json`
 */
export function missing(
  seeds: number,
  occurred: { has(event: string): boolean },
  shares: Readonly<Record<string, number>>,
): string[] {
  return mustOccur.filter((event) => !occurred.has(event) && seeds * (shares[event] ?? 0) >= expected);
}

/** Each assumption with the invariants that may break without it. Linearizability is only checked with all of them. */
export const allowed: readonly { readonly assumption: Assumption; readonly invariant: Invariant }[] =
  assumptions.flatMap((assumption) =>
    everyInvariant
      .filter((invariant) => invariant !== "linearizable")
      .filter((invariant) => (invariants[invariant] as readonly Assumption[]).includes(assumption))
      .map((invariant) => ({ assumption, invariant })),
  );
