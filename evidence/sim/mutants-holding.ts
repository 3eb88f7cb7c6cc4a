import { type Mutant, patch, twoAtOnce, twoHolders } from "./mutant.ts";

/** Defects of validity, of extensions, of fences, and of what a lock keeps. */
export const holdingMutants: readonly Mutant[] = [
  {
    name: "validity counted from the answers",
    breaks: "the ttl begins when the endpoint executes the request, not when its answer arrives",
    patches: [
      patch("lock/acquire.ts #lockOf", "{ elapsed } = round", "elapsed = stopwatch(this.#settings.runtime)"),
    ],
    noticedBy: twoHolders,
  },
  {
    name: "drift is not subtracted",
    breaks: "the endpoints' clocks may run faster than the holder's",
    patches: [
      patch("lock/validity.ts budgetOf", "- (ttl * this.#options.driftFactor + expiryPrecision)", ""),
    ],
    noticedBy: twoAtOnce,
  },
  {
    name: "monotonic clock only",
    breaks: "a clock that stands still while the process is frozen lengthens the validity",
    patches: [
      patch(
        "runtime.ts stopwatch",
        "Math.max(runtime.now() - wall, steadyTime(runtime) - start)",
        "runtime.monotonic() - monotonic",
      ),
      patch("runtime.ts stopwatch", "start = steadyTime(runtime)", "monotonic = runtime.monotonic()"),
    ],
    noticedBy: twoAtOnce,
  },
  {
    name: "larger total of two clocks",
    breaks:
      "one clock is set back, then the other stands still: both totals are too small, and so is the larger",
    patches: [patch("runtime.ts steadyTime", "clocks.stoodStill += greatest - clocks.least", "")],
    noticedBy: [...twoAtOnce, "holds survive", "a writer is alone", "one owner at a time"],
  },
  {
    name: "no expiry timer",
    breaks: "the holder is not informed of the end while requests hang (node-redlock: no report after 3 s)",
    patches: [
      patch(
        "lock/validity.ts watch",
        "sharedTimer(this.#options.runtime, delay, () => this.watch(), !!this.#controller)",
        "delay < 0 ? () => undefined : undefined",
      ),
    ],
    noticedBy: ["validity is honest"],
  },
  {
    name: "expiry timer without a check every second",
    breaks: "a timer stands still while the process is frozen, and fires late by as much",
    patches: [
      patch("lock/validity.ts watch", "Math.min(Math.ceil(left), expiryCheckInterval)", "Math.ceil(left)"),
    ],
    noticedBy: ["validity is honest"],
  },
  {
    name: "extension outlasts the validity",
    breaks: "a request may take longer than the remaining validity, and still counts (redlock-universal)",
    patches: [
      patch("lock/extend.ts extendOnQuorum", "{ cost, timeout: validity.remaining() }", "{ cost }"),
      patch(
        "lock/extend.ts extendOnQuorum",
        "await round.result;\n  if (validity.loss) throw validity.loss;",
        "await round.result;",
      ),
    ],
    noticedBy: ["validity is honest", ...twoAtOnce],
  },
  {
    name: "shorter extensions are forgotten",
    breaks: "a shorter extension that is executed late shortens a longer one that was granted",
    patches: [patch("lock/lock.ts #extendOne", "this.#openExtensions.lowest(name) < ttl", "ttl < 0")],
    noticedBy: twoHolders,
  },
  {
    name: "extensions overtake each other",
    breaks: "two are sent at once, and the shorter one may be executed last",
    patches: [
      patch("lock/lock.ts extend", "this.#extension.then(() => this.#extend(ttl))", "this.#extend(ttl)"),
    ],
    noticedBy: twoHolders,
  },
  {
    name: "stolen lock is extended without a pause",
    breaks: "a refusal does not count as a loss, and is retried at once (node-redlock: 9 900 times)",
    patches: [
      patch(
        "lock/extend.ts extendOnQuorum",
        'if (result === "refused")',
        'if (result === "granted" && validity.loss)',
      ),
      patch("lock/auto-extend.ts autoExtend", "pause = nextPause();", "pause = 0;"),
    ],
    noticedBy: ["requests are bounded", "calls end"],
  },
  {
    name: "using hides the loss",
    breaks: "using resolves although the lock was lost while its routine ran",
    patches: [
      patch(
        "redlock.ts using",
        "if (signal.aborted) throw signal.reason;\n      return result;",
        "return result;",
      ),
    ],
    noticedBy: ["the routine's outcome wins"],
  },
  {
    name: "fence without the raising round",
    breaks: "a fence that only a minority has seen is returned",
    patches: [patch("lock/fence.ts highestFence", "fences.filter((drawn) => drawn === fence)", "fences")],
    noticedBy: ["fences increase"],
  },
  {
    name: "counter without a ttl",
    breaks: "the counter of every resource stays forever",
    patches: [patch("redis/cell.lua", ', "PX", string.format("%.0f", kept)', "")],
    noticedBy: ["every key expires"],
  },
  {
    name: "fence begins again after a loss of memory",
    breaks: "without the clock, fences fall when an endpoint forgets its counter",
    patches: [patch("lock/acquire.ts #attempt", "{ least, retention }", "{ least: 1, retention }")],
    noticedBy: ["fences outlive memory"],
  },
  {
    name: "counters in the future expire too early",
    breaks:
      "a client whose clock is ahead draws a fence, and after the retention the next client draws a smaller one",
    patches: [patch("redis/cell.lua", "kept + math.max(", "kept + 0 * math.max(")],
    noticedBy: ["fences increase"],
  },
  {
    name: "handoff leaves the giver's handle alive",
    breaks: "its automatic extension goes on, and shortens the receiver's longer one",
    patches: [patch("lock/handoff.ts handoff", "lock.abandon();", "")],
    noticedBy: twoHolders,
  },
  {
    name: "resume takes nothing over",
    breaks: "of two processes that have the same message, both resume the lock",
    patches: [
      patch("lock/handoff.ts tryToResume", "if (takeOver && !immediate) await lock.extend();", ""),
      patch("lock/handoff.ts resumedParts", "nonce: randomToken(runtime)", "nonce"),
    ],
    noticedBy: twoHolders,
  },
  {
    name: "restore requests are not remembered",
    breaks: "the release leaves no tombstone, and a late restore request is executed after it",
    patches: [patch("lock/lock.ts #restoreWhereLost", "this.#settle(endpoint.name, request!)", "request")],
    noticedBy: ["rolled back stays rolled back"],
  },
];
