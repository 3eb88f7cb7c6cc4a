import { type Mutant, twoAtOnce, twoHolders } from "./mutant.ts";

/** Defects of validity, of extensions, and of fences. */
export const holdingMutants: readonly Mutant[] = [
  {
    name: "validity counted from the answers",
    breaks: "the ttl begins when the endpoint executes the request, not when its answer arrives",
    patches: [
      {
        file: "lock/acquire.ts",
        find: "const { elapsed } = round;",
        replace: "const elapsed = stopwatch(this.#settings.runtime);",
      },
    ],
    noticedBy: twoHolders,
  },
  {
    name: "extension counted from the answers",
    breaks: "the same for an extension",
    patches: [
      {
        file: "lock/extend.ts",
        find: "  validity.extend(ttl, round.elapsed);",
        replace: "  validity.extend(ttl, stopwatch(settings.runtime));",
      },
    ],
    noticedBy: twoAtOnce,
  },
  {
    name: "drift is not subtracted",
    breaks: "the endpoints' clocks may run faster than the holder's",
    patches: [
      {
        file: "lock/validity.ts",
        find: "return ttl - (ttl * this.#options.driftFactor + expiryPrecision);",
        replace: "return ttl;",
      },
    ],
    noticedBy: twoAtOnce,
  },
  {
    name: "wall clock only",
    breaks: "a wall clock that is set back lengthens the validity",
    patches: [
      {
        file: "runtime.ts",
        find: "Math.max(runtime.now() - wall, steadyTime(runtime) - start)",
        replace: "runtime.now() - wall",
      },
    ],
    noticedBy: [...twoAtOnce, "calls end"],
  },
  {
    name: "monotonic clock only",
    breaks: "a clock that stands still while the process is frozen lengthens the validity",
    patches: [
      {
        file: "runtime.ts",
        find: "Math.max(runtime.now() - wall, steadyTime(runtime) - start)",
        replace: "runtime.monotonic() - monotonic",
      },
      {
        file: "runtime.ts",
        find: "const start = steadyTime(runtime);",
        replace: "const monotonic = runtime.monotonic(), start = steadyTime(runtime); void [wall, start];",
      },
    ],
    noticedBy: twoAtOnce,
  },
  {
    name: "larger total of two clocks",
    breaks:
      "one clock is set back, then the other stands still: both totals are too small, and so is the larger",
    patches: [
      {
        file: "runtime.ts",
        find: "if (!isRounding) clocks.stoodStill += greatest - clocks.least;",
        replace: "",
      },
    ],
    noticedBy: [...twoAtOnce, "holds survive", "a writer is alone", "one owner at a time"],
  },
  {
    name: "no expiry timer",
    breaks: "the holder is not informed of the end while requests hang (node-redlock: no report after 3 s)",
    patches: [
      {
        file: "lock/validity.ts",
        find: "this.#cancelAlarm = this.#options.runtime.timer(delay, () => this.watch(), !!this.#controller);",
        replace: "this.#cancelAlarm = delay < 0 ? () => undefined : undefined;",
      },
    ],
    noticedBy: ["validity is honest"],
  },
  {
    name: "expiry timer without a check every second",
    breaks: "a timer stands still while the process is frozen, and fires late by as much",
    patches: [
      {
        file: "lock/validity.ts",
        find: "Math.min(Math.ceil(left), expiryCheckInterval)",
        replace: "Math.ceil(left)",
      },
    ],
    noticedBy: ["validity is honest"],
  },
  {
    name: "expiry timer is not brought forward",
    breaks: "an extension that shortens the validity leaves the timer unchanged",
    patches: [{ file: "lock/validity.ts", find: "    if (this.#cancelAlarm) this.watch();\n", replace: "" }],
    noticedBy: ["validity is honest"],
  },
  {
    name: "extension outlasts the validity",
    breaks: "a request may take longer than the remaining validity, and still counts (redlock-universal)",
    patches: [
      {
        file: "lock/extend.ts",
        find: "Math.min(settings.timeout, validity.remaining())",
        replace: "settings.timeout",
      },
      {
        file: "lock/extend.ts",
        find: "  const result = await round.result;\n  if (validity.loss) throw validity.loss;\n",
        replace: "  const result = await round.result;\n",
      },
    ],
    noticedBy: ["validity is honest", ...twoAtOnce],
  },
  {
    name: "validity bounded by the new deadline",
    breaks: "an extension counts while it hangs, and its failure is noticed after the real end (rueidislock)",
    patches: [
      {
        file: "lock/extend.ts",
        find: "if (validity.budgetOf(ttl) < validity.remaining()) validity.extend(",
        replace: "validity.extend(",
      },
    ],
    noticedBy: twoAtOnce,
  },
  {
    name: "unanswered shorter extension is ignored",
    breaks: "an extension that shortens the ttl may have been executed without an answer",
    patches: [
      {
        file: "lock/extend.ts",
        find: "if (validity.budgetOf(ttl) < validity.remaining()) validity.extend(",
        replace: "if (settings.ttl < 0) validity.extend(",
      },
    ],
    noticedBy: twoAtOnce,
  },
  {
    name: "shorter extensions are forgotten",
    breaks: "a shorter extension that is executed late shortens a longer one that was granted",
    patches: [
      {
        file: "lock/lock.ts",
        find: "if (this.#openExtensions.lowest(name) < ttl) {",
        replace: "if (ttl < 0) {",
      },
    ],
    noticedBy: twoHolders,
  },
  {
    name: "extensions overtake each other",
    breaks: "two are sent at once, and the shorter one may be executed last",
    patches: [
      {
        file: "lock/lock.ts",
        find: "this.#extension.then(() => this.#extend(ttl))",
        replace: "this.#extend(ttl)",
      },
    ],
    noticedBy: twoHolders,
  },
  {
    name: "extension creates the key again",
    breaks:
      "it prolongs a lock that another client held meanwhile, or that nobody holds (redsync: WithSetNXOnExtend)",
    patches: [
      {
        file: "redis/cell-script.ts",
        find: 'if found[n + 1] or other or (op == "extend" and own < n) then',
        replace: "if found[n + 1] or other then",
      },
    ],
    noticedBy: [...twoHolders, "rolled back stays rolled back"],
  },
  {
    name: "extension replaces another's key",
    breaks: "an extension that does not compare, and is executed late",
    patches: [
      {
        file: "redis/cell-script.ts",
        find: "if found[i] and string.sub(found[i], from) == string.sub(value, from) then",
        replace:
          'if found[i] and (op == "extend" or string.sub(found[i], from) == string.sub(value, from)) then',
      },
    ],
    noticedBy: twoAtOnce,
  },
  {
    name: "short validity cannot be extended",
    breaks: "a held lock with less than 500 ms of validity cannot be extended (@upstash/lock)",
    patches: [
      {
        file: "lock/extend.ts",
        find: "  if (validity.loss) throw validity.loss;\n  // With a shorter",
        replace: '  if (validity.remaining() < 500) throw validity.lose("too short");\n  // With a shorter',
      },
    ],
    noticedBy: ["refusals are true"],
  },
  {
    name: "failed automatic extension is an unhandled rejection",
    breaks: "nothing handles the error of an extension in the background (redis-semaphore)",
    patches: [
      {
        file: "lock/auto-extend.ts",
        find: "if (!(error instanceof QuorumError)) return;",
        replace: "if (!(error instanceof QuorumError)) throw error;",
      },
    ],
    noticedBy: ["calls end"],
  },
  {
    name: "stolen lock is extended without a pause",
    breaks: "a refusal does not count as a loss, and is retried at once (node-redlock: 9 900 times)",
    patches: [
      {
        file: "lock/extend.ts",
        find: '  if (result === "refused") throw validity.lose(takeOver?.refusal ?? "its token is gone from a quorum");\n',
        replace: "",
      },
      { file: "lock/auto-extend.ts", find: "pause = nextPause();", replace: "pause = 0;" },
    ],
    noticedBy: ["requests are bounded", "calls end"],
  },
  {
    name: "failed extension is repeated without a pause",
    breaks: "while no quorum answers, one request follows another",
    patches: [{ file: "lock/auto-extend.ts", find: "pause = nextPause();", replace: "pause = 0;" }],
    noticedBy: ["requests are bounded", "calls end"],
  },
  {
    name: "short ttl is extended all the time",
    breaks: "the extension is due a second before the end, also for ttls below a second (redlock-universal)",
    patches: [
      {
        file: "lock/auto-extend.ts",
        find: "Math.max(validity.remaining() - validity.budgetOf(options.ttl()) / 2, 1)",
        replace: "Math.max(validity.remaining() - 1_000, 1)",
      },
    ],
    noticedBy: ["requests are bounded", "calls end"],
  },
  {
    name: "held for longer than maxHold",
    breaks: "a holder that hangs or forgets the lock keeps it forever",
    patches: [
      {
        file: "lock/auto-extend.ts",
        find: "Math.floor(Math.min(whole, validity.remainingHold(maxHold)))",
        replace: "(maxHold > 0 ? whole : 0)",
      },
    ],
    noticedBy: ["waiters are served", "calls end"],
  },
  {
    name: "failed release replaces the outcome",
    breaks: "using rejects although its routine returned (node-redlock)",
    patches: [
      { file: "redlock.ts", find: "await lock[Symbol.asyncDispose]();", replace: "await lock.release();" },
    ],
    noticedBy: ["the routine's outcome wins"],
  },
  {
    name: "using hides the loss",
    breaks: "using resolves although the lock was lost while its routine ran",
    patches: [
      {
        file: "redlock.ts",
        find: "      if (signal.aborted) throw signal.reason;\n      return result;",
        replace: "      void signal;\n      return result;",
      },
    ],
    noticedBy: ["the routine's outcome wins"],
  },
  {
    name: "fence without the raising round",
    breaks: "a fence that only a minority has seen is returned",
    patches: [
      {
        file: "lock/fence.ts",
        find: "const count = fences.filter((drawn) => drawn === fence).length;",
        replace: "const count = fences.length;",
      },
    ],
    noticedBy: ["fences increase"],
  },
  {
    name: "smallest fence of the quorum",
    breaks: "the fence must not be less than any counter of the quorum",
    patches: [{ file: "lock/fence.ts", find: "Math.max(...fences)", replace: "Math.min(...fences)" }],
    noticedBy: ["fences increase"],
  },
  {
    name: "fence is the client's clock",
    breaks: "the counter is ignored, and clients' clocks differ",
    patches: [
      {
        file: "redis/cell-script.ts",
        find: 'fence = math.max(fence, tonumber(found[i] or 0) + (op == "acquire" and 1 or 0))',
        replace: "fence = math.max(fence, 1)",
      },
    ],
    noticedBy: ["fences increase"],
  },
  {
    name: "counter lives as long as the lock",
    breaks: "an idle resource forgets its fence, and the next client's clock may be behind",
    patches: [
      {
        file: "lock/options.ts",
        find: "fenceRetention: Math.max(86_400_000, ttl)",
        replace: "fenceRetention: ttl",
      },
    ],
    noticedBy: ["fences increase"],
  },
  {
    name: "counter without a ttl",
    breaks: "the counter of every resource stays forever",
    patches: [
      {
        file: "redis/cell-script.ts",
        find: 'redis.call("SET", KEYS[i], fence, "PX", string.format("%.0f", kept))',
        replace: 'redis.call("SET", KEYS[i], fence)',
      },
    ],
    noticedBy: ["every key expires"],
  },
  {
    name: "fence begins again after a loss of memory",
    breaks: "without the clock, fences fall when an endpoint forgets its counter",
    patches: [
      {
        file: "lock/acquire.ts",
        find: "acquire(call, cell, ttl, { least, retention })",
        replace: "acquire(call, cell, ttl, { least: 1, retention })",
      },
    ],
    noticedBy: ["fences outlive memory"],
  },
];
