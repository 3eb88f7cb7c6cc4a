import { type Exemption, inCheck } from "./exemption.ts";

/** What the checks of idempotent runs let pass. */
export const runExemptions: readonly Exemption[] = [
  {
    name: "a claim stands for a timeout longer than its deadline",
    because: "that is the time to store the result: docs/idempotency.md",
    without: [inCheck("work-idempotency.ts", "+ (options.timeout ?? 1_000) + 1", "+ 1")],
    seed: 2,
    work: "locks",
    invariant: "nothing is abandoned",
  },
  {
    name: "a run whose result no quorum has keeps its locks where its begin is executed late",
    because: "its claim keeps other runs away until the lease ends: docs/idempotency.md",
    without: [
      inCheck("work-idempotency.ts", '    if (unstored === "no-quorum") kept.add(lockIdOf(nonce));\n', ""),
    ],
    seed: 2005,
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
    name: "a result that was stored before it was forgotten does not stand",
    because: "it may be removed before its run learns that it was stored",
    without: [
      inCheck(
        "run-histories.ts",
        "removed before the run learned of it.\n    if (this.#lastRemoval(recordKeyOf(key)) >= invoked) return;",
        "removed before the run learned of it.",
      ),
    ],
    seed: 3_923,
    work: "operators",
    invariant: "a stored result stands",
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
    name: "a record that was forgotten is extended",
    because: "another call has brought it back from an endpoint that kept it",
    without: [inCheck("wire.ts", "!trail.standing && !stood", "!trail.standing")],
    seed: 2462,
    work: "operators",
    invariant: "rolled back stays rolled back",
  },
];
