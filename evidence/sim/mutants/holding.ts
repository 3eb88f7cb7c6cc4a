import { type Mutant, patch, twoAtOnce, twoHolders } from "./mutant.ts";

/** Defects of validity, of extensions, of fences, and of what a lock keeps. */
export const holdingMutants: readonly Mutant[] = [
  {
    name: "validity counted from the answers",
    breaks: "the ttl begins when the endpoint executes the request, not when its answer arrives",
    patches: patch(
      "lock/validity.ts constructor",
      "this.#elapsed = options.elapsed;",
      "const now = options.runtime.now();\nthis.#elapsed = () => options.runtime.now() - now;",
    ),
    noticedBy: twoHolders,
  },
  {
    name: "drift is not subtracted",
    breaks: "the endpoints' clocks may run faster than the holder's",
    patches: patch("lock/validity.ts validityOf", "- (ttl * driftFactor + expiryPrecision)", ""),
    noticedBy: twoAtOnce,
  },
  {
    name: "larger total of two clocks",
    breaks:
      "one clock is set back, then the other stands still: both totals are too small, and so is the larger",
    patches: patch("runtime/runtime.ts steadyClock", "ahead < 0 || ahead > rounding || step < 0", "false"),
    noticedBy: [...twoAtOnce, "holds survive", "a writer is alone", "one owner at a time"],
  },
  {
    name: "no expiry timer",
    breaks: "the holder is not informed of the end while requests hang (node-redlock: no report after 3 s)",
    patches: patch(
      "lock/validity.ts watch",
      "this.#options.runtime.timer(delay, () => this.watch(), !!this.#controller)",
      "delay < 0 ? () => undefined : undefined",
    ),
    noticedBy: ["validity is honest"],
  },
  {
    name: "shorter extensions are forgotten",
    breaks: "a shorter extension that is executed late shortens a longer one that was granted",
    patches: patch("lock/lock.ts #extendOne", "Math.min(...unanswered.keys()) < ttl", "ttl < 0"),
    noticedBy: twoHolders,
  },
  {
    name: "stolen lock is extended without a pause",
    breaks: "a refusal does not count as a loss, and is retried at once (node-redlock: 9 900 times)",
    patches: [
      ...patch(
        "lock/lock.ts #extendOnQuorum",
        'if (result === "refused")',
        'if (result === "granted" && validity.loss)',
      ),
      ...patch("lock/auto-extend.ts autoExtend", "Math.max(remaining / 2, shortestPause * whole)", "0"),
    ],
    noticedBy: ["requests are bounded", "calls end"],
  },
  {
    name: "using hides the loss",
    breaks: "using resolves although the lock was lost while its routine ran",
    patches: patch(
      "redlock.ts using",
      "if (signal.aborted) throw signal.reason;\n      return result;",
      "return result;",
    ),
    noticedBy: ["the routine's outcome wins"],
  },
  {
    name: "fence without the raising round",
    breaks: "a fence that only a minority has seen is returned",
    patches: patch("lock/fence.ts fenceOf", "drawn.filter((one) => one === highest)", "drawn"),
    noticedBy: ["fences increase"],
  },
  {
    name: "a claim draws no fence",
    breaks: "where a clock is behind, two holders have the same fence",
    patches: patch("twins/cell-twin.ts write", "drawn = isNew ? 1 : 0", "drawn = 0"),
    noticedBy: ["fences increase"],
  },
  {
    name: "a refused claim draws a fence",
    breaks: "it changes what it does not get",
    patches: patch(
      "twins/cell-twin.ts refusal",
      'return [0, index + 1, remaining, value ?? ""];',
      'for (const counter of cell.counters) call("SET", counter, cell.least, "PX", cell.kept);\n    return [0, index + 1, remaining, value ?? ""];',
    ),
    noticedBy: ["all or none"],
  },
  {
    name: "counter without a ttl",
    breaks: "the counter of every resource stays forever",
    patches: patch("twins/cell-twin.ts write", 'fence, "PX", kept', "fence"),
    noticedBy: ["every key expires"],
  },
  {
    name: "fence begins again after a loss of memory",
    breaks: "without the clock, fences fall when an endpoint forgets its counter",
    patches: patch("lock/fence.ts fenceOf", "given ?? leastFence(runtime)", "given ?? 1"),
    noticedBy: ["fences outlive memory"],
  },
  {
    name: "resume takes nothing over",
    breaks: "of two processes that have the same message, both resume the lock",
    patches: patch("handoff/handoff.ts takeover", "...lock.cell(own)", "...lock.cell(nonce)"),
    noticedBy: twoHolders,
  },
  {
    name: "resume counts a vote of the old nonce",
    breaks: "it finds the giver's nonce and leaves it there, so its holder loses the lock",
    patches: patch("handoff/handoff.ts takeover", "ttl, cell.value)", "ttl, value)"),
    noticedBy: [...twoHolders, "a quorum decides", "holds survive"],
  },
  {
    name: "resume forgets the note",
    breaks: "nobody learns any more who holds the lock",
    patches: patch(
      "handoff/handoff.ts takeover",
      "const { nonce, note } = parseHolder(value);",
      "const { nonce } = parseHolder(value);\nconst note = undefined;",
    ),
    noticedBy: ["inspections are true"],
  },
  {
    name: "a failed resume is not undone",
    breaks: "nobody can resume the lock any more, and it stands until its ttl",
    patches: patch(
      "handoff/handoff.ts takeover",
      "if (isTaken || claimed.hasDoneNothing) return",
      'if (!isTaken) return { outcome: "lost" };\nif (isTaken) return',
    ),
    noticedBy: ["nothing is abandoned", "holds survive"],
  },
];
