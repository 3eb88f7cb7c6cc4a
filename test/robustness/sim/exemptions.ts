import type { Assumption, Invariant } from "./assumptions.ts";
import type { Patch } from "./mutant.ts";
import type { Theme } from "./scenario.ts";

/** A place where a check lets something pass that looks like a violation, and is none. */
export interface Exemption {
  /** What passes. */
  readonly name: string;
  /** Why it is no violation. */
  readonly because: string;
  /** Takes the exemption out of the check. */
  readonly without: readonly Patch[];
  /** A simulation of the sound library that the check then accuses of violating `invariant`. */
  readonly seed: number;
  readonly work: Theme;
  readonly invariant: Invariant;
  /** The assumptions that this simulation drops. Default: what the seed decides. */
  readonly dropped?: readonly Assumption[];
}

/** A text of the simulator, relative to src/ as all patches are. */
function inCheck(file: string, find: string, replace: string): Patch {
  return { file: `../test/robustness/sim/${file}`, find, replace };
}

/** All of them. What is not listed here is judged without exception. */
export const exemptions: readonly Exemption[] = [
  {
    name: "an owner's hold that was acquired while another handle of the owner was released",
    because: "a release ends the holds that the owner has while it runs: it may have ended this one, or not",
    without: [
      inCheck(
        "holds.ts",
        "hold.endUnknown = hold.holder !== hold.nonce && this.isReleasedBeside(hold);",
        "hold.endUnknown = false;",
      ),
    ],
    seed: 52,
    work: "locks",
    invariant: "mutual exclusion",
  },
  {
    name: "an owner's hold that another handle has released no longer stands",
    because: "a release ends the hold for all handles of the owner",
    without: [inCheck("holds.ts", "!process.alive || this.isReleasedBeside(hold)", "!process.alive")],
    seed: 4,
    work: "locks",
    invariant: "what is held stands",
  },
  {
    name: "an owner's hold is extended after another handle released it",
    because: "a third handle of the owner may have acquired it again",
    without: [inCheck("handles.ts", "if (holds.isReleasedBeside(hold)) return;\n  const what", "const what")],
    seed: 14,
    work: "locks",
    invariant: "validity is honest",
  },
  {
    name: "an owner's hold is lost after another handle released it",
    because: "a release ends the hold for all handles of the owner",
    without: [inCheck("handles.ts", "const isAlone = !holds.isReleasedBeside(hold) &&", "const isAlone = ")],
    seed: 28,
    work: "locks",
    invariant: "holds survive",
  },
  {
    name: "two handles that an owner acquires at once draw the same fence, or return in another order",
    because: "they are one holder: docs/fencing.md",
    without: [inCheck("fences.ts", "  if (atOnce && later.holder === earlier.holder) return;\n", "")],
    seed: 52,
    work: "locks",
    invariant: "fences increase",
  },
  {
    name: "two handles that an owner acquires at once draw the same fence, and their history is linearizable",
    because: "they are one holder: docs/fencing.md",
    without: [
      inCheck("histories.ts", "History(grants, a", "History(grants.map(({ owner, ...of }) => of), a"),
    ],
    seed: 40_002_661,
    work: "locks",
    invariant: "linearizable",
  },
  {
    name: "fences fall when no lock was held for longer than the retention",
    because: "clients whose clocks are behind rise only above what is remembered: docs/fencing.md",
    without: [
      inCheck(
        "fences.ts",
        '      if (retention?.clocks === "behind" && gap > 0.99 * retention.ms) continue;\n',
        "",
      ),
    ],
    seed: 153,
    work: "locks",
    invariant: "fences increase",
  },
  {
    name: "a clock change delays the report of an end by up to a second",
    because: "the timer may depend on the clock that stood still; both clocks are read once a second",
    without: [
      inCheck("holds.ts", "const toleranceAfterDisturbance = 1_004;", "const toleranceAfterDisturbance = 4;"),
    ],
    seed: 9,
    work: "locks",
    invariant: "validity is honest",
  },
  {
    name: "a holder that is releasing is not informed of the end",
    because: "a release does not abort the signal",
    without: [inCheck("holds.ts", "!hasRun || hold.releaseInvoked !== undefined", "!hasRun")],
    seed: 71,
    work: "locks",
    invariant: "validity is honest",
  },
  {
    name: "a plain acquire that is executed twice is refused because of itself",
    because: "SET NX cannot recognise its own value; it is sent only where single execution is assumed",
    without: [
      inCheck(
        "network.ts",
        'command[0] === "SET" && this.#exactReplies ? (["single execution"] as const) : []',
        "[]",
      ),
    ],
    seed: 19,
    work: "locks",
    invariant: "refusals are true",
  },
  {
    name: "an acquire that is executed late is refused because its holder has restored it",
    because: "the restored value is held; its release frees it, whatever the late request gets back",
    without: [inCheck("network.ts", "    if (this.#wire.isRestored(nonceOf(value), server)) return;\n", "")],
    seed: 460,
    work: "locks",
    invariant: "refusals are true",
  },
  {
    name: "a release returns false although a quorum freed a plain lock",
    because: "of a release that is executed twice only the second reply may arrive: single execution",
    without: [
      inCheck(
        "handles.ts",
        'const remembers = wire.isMember(nonce) ? [] : (["single execution"] as const);',
        "const remembers: never[] = [];",
      ),
    ],
    seed: 48,
    work: "locks",
    invariant: "a quorum decides",
    dropped: ["single execution"],
  },
  {
    name: "a second release returns false",
    because: "the first one has freed it",
    without: [inCheck("handles.ts", "} else if (!again) {", "} else {")],
    seed: 3,
    work: "locks",
    invariant: "a quorum decides",
  },
  {
    name: "a lock that its holder forgets stands until its ttl",
    because: "nobody releases it",
    without: [inCheck("work-lock.ts", "  if (forgets) kept.add(hold.nonce);\n", "")],
    seed: 1,
    work: "locks",
    invariant: "nothing is abandoned",
  },
  {
    name: "a process that has died rolls nothing back",
    because: "its locks end with their ttl",
    without: [inCheck("wire.ts", "!process.alive || !trail.acquireExecuted", "!trail.acquireExecuted")],
    seed: 3,
    work: "locks",
    invariant: "nothing is abandoned",
  },
  {
    name: "a repeated acquire is not rolled back once more",
    because: "nobody knows that it was executed again: its ttl frees the key",
    without: [
      inCheck(
        "wire.ts",
        'request.operation === "acquire" && copy === 0 && awaited',
        'request.operation === "acquire" && awaited',
      ),
    ],
    seed: 206,
    work: "locks",
    invariant: "nothing is abandoned",
  },
  {
    name: "a claim stands for a timeout longer than its deadline",
    because: "that is the time to store the result: docs/idempotency.md",
    without: [inCheck("work-idempotency.ts", "+ (options.timeout ?? 1_000) + 1", "+ 1")],
    seed: 2,
    work: "locks",
    invariant: "nothing is abandoned",
  },
  {
    name: "a call of `once` that waited to its end gives up without an interval",
    because: "it returns when to try again, whether or not the claim that it met becomes a run",
    without: [inCheck("work-once.ts", "&& waited() < 0.99 * waitable", "")],
    seed: 3,
    work: "once",
    invariant: "refusals are true",
  },
  {
    name: "a call of `once` runs after an interval that ended while its request was on its way",
    because: "the endpoint was asked only when the interval was over",
    without: [
      inCheck(
        "work-once.ts",
        "Math.min(timeout, ttl) / process.rate + process.pausedFor - pausedFor + 4",
        "0",
      ),
    ],
    seed: 28,
    work: "once",
    invariant: "one run per tick",
  },
  {
    name: "a waiter whose clock is behind is served before one that called earlier",
    because: "tickets are ordered by the waiters' clocks: docs/sync.md",
    without: [inCheck("work-fair.ts", " && other.ticket > one.ticket", "")],
    seed: 4,
    work: "fair",
    invariant: "served in order",
  },
  {
    name: "another call than the last of a burst runs",
    because: "calls that overlap reach the endpoints in different orders",
    without: [inCheck("work-debounce.ts", "if (!last || !isLater) return;", "if (!last) return;")],
    seed: 5,
    work: "debounce",
    invariant: "waiters are served",
  },
  {
    name: "what an operator has freed is held by two",
    because: "the holder is not asked: it relies on its validity, and only fences protect what it writes",
    without: [inCheck("holds.ts", " || freed.has(other.nonce) || freed.has(nonce)) return;", ") return;")],
    seed: 5,
    work: "operators",
    invariant: "mutual exclusion",
  },
  {
    name: "what an operator has freed does not stand",
    because: "that is what freeing means",
    without: [inCheck("holds.ts", "    if (world.freed.has(hold.nonce)) return;\n", "")],
    seed: 11,
    work: "operators",
    invariant: "what is held stands",
  },
  {
    name: "what an operator has freed is lost to its holder",
    because: "that is what freeing means",
    without: [inCheck("handles.ts", " && !world.freed.has(hold.nonce)", "")],
    seed: 17,
    work: "operators",
    invariant: "holds survive",
  },
  {
    name: "an owner's acquire returns a smaller fence after one of its releases",
    because:
      "the release may have ended that hold before its acquire returned, and another client came between",
    without: [inCheck("fences.ts", "  if (atOnce && later.endUnknown) return;\n", "")],
    seed: 462,
    work: "locks",
    invariant: "fences increase",
  },
  {
    name: "what is released after its end proves nothing about that hold",
    because: "a repeated acquire, or one of another handle of the owner, may have left the value again",
    without: [
      inCheck(
        "histories.ts",
        "const over = releaseInvoked !== undefined && ended < releaseInvoked && repeats;",
        "const over = false;",
      ),
    ],
    seed: 178,
    work: "locks",
    invariant: "linearizable",
  },
  {
    name: "a shorter extension that is executed again cuts a longer one",
    because: "this needs single execution, beside what the invariant needs",
    without: [
      inCheck(
        "holds.ts",
        'return extensions.regrown ? [...needs, "single execution"] : needs;',
        "return needs;",
      ),
    ],
    seed: 187,
    work: "locks",
    invariant: "what is held stands",
  },
  {
    name: "a run whose result no quorum has keeps its locks where its begin is executed late",
    because: "its claim keeps other runs away until the lease ends: docs/idempotency.md",
    without: [
      inCheck("work-idempotency.ts", '    if (unstored === "no-quorum") kept.add(lockIdOf(nonce));\n', ""),
    ],
    seed: 1_419,
    work: "locked-runs",
    invariant: "nothing is abandoned",
  },
  {
    name: "a completed record is not rolled back",
    because: "it is the result",
    without: [inCheck("wire.ts", "!trail.acquireExecuted || trail.completed", "!trail.acquireExecuted")],
    seed: 1,
    work: "locks",
    invariant: "nothing is abandoned",
  },
  {
    name: "the receiver of a lock dies and does not release it",
    because: "its ttl ends it, and the giver cannot know",
    without: [inCheck("work-lock.ts", "  kept.add(hold.nonce);\n  if (actor", "  if (actor")],
    seed: 60,
    work: "locks",
    invariant: "nothing is abandoned",
  },
  {
    name: "a plain acquire of a lock that was handed off is executed after the receiver's release",
    because: "the giver cannot know of that release, and SET NX sees no tombstone: docs/algorithm.md",
    without: [
      inCheck("work-lock.ts", "  if (!isPlain || unsettled.length === 0) kept.delete", "  kept.delete"),
    ],
    seed: 40_012_897,
    work: "locks",
    invariant: "nothing is abandoned",
  },
  {
    name: "the history of what an operator has freed is not linearizable",
    because: "it ends without its holder",
    without: [
      inCheck("histories.ts", "  if (holds.some(({ nonce }) => world.freed.has(nonce))) return false;\n", ""),
    ],
    seed: 10,
    work: "operators",
    invariant: "linearizable",
  },
  {
    name: "a holder whose lock an operator freed during the acquire has a smaller fence than the next one",
    because: "its answer may come later than that of the next holder, and its validity is not over",
    without: [inCheck("fences.ts", "  if (atOnce && world.freed.has(later.nonce)) return;\n", "")],
    seed: 76,
    work: "operators",
    invariant: "fences increase",
  },
  {
    name: "a result that was stored before it was forgotten does not stand",
    because: "it may be removed before its run learns that it was stored",
    without: [
      inCheck(
        "run-histories.ts",
        "removed before the run learned of it.\n    if (this.#lastRemoval(recordKeyOf(key)) >= invoked) return;",
        "removed before the run learned of it.",
      ),
    ],
    seed: 143,
    work: "operators",
    invariant: "a stored result stands",
  },
  {
    name: "a process that was paused meanwhile is not informed of the end in time",
    because: "its timers fire when it goes on",
    without: [inCheck("holds.ts", "process.running && process.pausedFor === pausedFor", "process.running")],
    seed: 14,
    work: "sync",
    invariant: "validity is honest",
  },
  {
    name: "a replay of what was forgotten meanwhile differs from the next one",
    because: "its caller learns of it after the key has run again",
    without: [
      inCheck(
        "run-histories.ts",
        "replaced, before the caller learned of it.\n    if (this.#lastRemoval(recordKeyOf(key)) >= invoked) return;",
        "replaced, before the caller learned of it.",
      ),
    ],
    seed: 162,
    work: "operators",
    invariant: "replays agree",
  },
  {
    name: "a probe of once is repeated after a QuorumError while an endpoint is silent",
    because: "two callers may divide the endpoints that answer between them",
    without: [
      inCheck(
        "work-once.ts",
        "error instanceof QuorumError && this.#shared.scenario.silentMinority",
        'error === "never"',
      ),
    ],
    seed: 20000705,
    work: "sync",
    invariant: "calls end",
  },
  {
    name: "a record that was forgotten is extended",
    because: "another call has brought it back from an endpoint that kept it",
    without: [inCheck("wire.ts", "!trail.standing && !stood", "!trail.standing")],
    seed: 20000664,
    work: "operators",
    invariant: "rolled back stays rolled back",
  },
];
