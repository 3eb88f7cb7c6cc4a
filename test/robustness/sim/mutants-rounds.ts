import { type Mutant, twoAtOnce, twoHolders } from "./mutant.ts";

/** In what a round asks, counts and takes back. */
export const roundMutants: readonly Mutant[] = [
  {
    name: "even split never settles",
    breaks: "failure needs as many votes as success, so 1 to 1 is neither (node-redlock)",
    patches: [
      {
        file: "quorum/tally.ts",
        find: "  const veto = count - quorum + 1;\n",
        replace: "  const veto = quorum;\n",
      },
      {
        file: "quorum/tally.ts",
        find: 'return granted + pending < quorum && refused + pending < veto ? "unavailable" : undefined;',
        replace: 'return count - granted - pending >= quorum ? "unavailable" : undefined;',
      },
    ],
    noticedBy: ["calls end"],
  },
  {
    name: "no request ends by itself",
    breaks: "a request without an answer is waited for without a limit (node-redlock: extend hung)",
    patches: [
      {
        file: "quorum/round.ts",
        find: "runtime.timer(timeout, () =>",
        replace: "runtime.timer(1e9, () =>",
      },
    ],
    noticedBy: ["calls end", "validity is honest", "waiters are served"],
  },
  {
    name: "quorum of one",
    breaks: "a quorum that may be set to 1 of 3 (redlock-universal)",
    patches: [{ file: "quorum/tally.ts", find: "return (count >> 1) + 1;", replace: "return 1;" }],
    noticedBy: [...twoAtOnce, "fences increase"],
  },
  {
    name: "half is a quorum",
    breaks: "rounding: 2 of 4 endpoints are no majority",
    patches: [
      { file: "quorum/tally.ts", find: "return (count >> 1) + 1;", replace: "return (count + 1) >> 1;" },
    ],
    noticedBy: [...twoAtOnce, "fences increase"],
  },
  {
    name: "outage looks like contention",
    breaks: "an endpoint that fails counts as one that refuses (redis-semaphore: catch → 0)",
    patches: [
      {
        file: "quorum/round.ts",
        find: 'else if (answer.outcome !== "error") this.#refused += 1;\n    else this.#context.onFailure',
        replace: 'else this.#refused += 1;\n    if (answer.outcome === "error") this.#context.onFailure',
      },
    ],
    noticedBy: ["refusals are true"],
  },
  {
    name: "contention looks like an outage",
    breaks: "a refusal counts as an endpoint that failed",
    patches: [
      {
        file: "quorum/round.ts",
        find: 'else if (answer.outcome !== "error") this.#refused += 1;',
        replace: 'else if (answer.outcome !== "error") this.#refused += 0;',
      },
      // Else what is known at the end mends it.
      {
        file: "lock/acquire.ts",
        find: "if (held || isRefused(round)) return",
        replace: "if (held) return",
      },
    ],
    noticedBy: ["refusals are true"],
  },
  {
    name: "failure is called too early",
    breaks: "the order of answers decides whether the caller is told of contention or of an outage",
    patches: [
      {
        file: "quorum/tally.ts",
        find: "return granted + pending < quorum && refused + pending < veto ?",
        replace: "return granted + pending < quorum ?",
      },
      // Else what is known at the end mends it.
      {
        file: "lock/acquire.ts",
        find: "if (held || isRefused(round)) return",
        replace: "if (held) return",
      },
    ],
    noticedBy: ["refusals are true"],
  },
  {
    name: "refusal is a grant",
    breaks: "null, which says that somebody else holds it, counts as done",
    patches: [
      {
        file: "redis/register.ts",
        find: "if (reply === no) return { outcome: refused };",
        replace: "if (reply === no) return granted;",
      },
    ],
    noticedBy: ["a quorum decides", ...twoAtOnce],
  },
  {
    name: "validity is not checked after acquire",
    breaks: "replies come after the ttl, and it is a lock all the same (node-redlock, redis-semaphore)",
    patches: [
      {
        file: "lock/acquire.ts",
        find: "return lock.remaining() > 0 ? {",
        replace: "return lock ? {",
      },
    ],
    noticedBy: ["validity is honest"],
  },
  {
    name: "partial grants are kept",
    breaks: "a failed round keeps what it took, and the next one fails because of it (node-redlock)",
    patches: [
      {
        file: "lock/acquire.ts",
        find: "const { done } = rollback(context, round, (call) => releaseOne(call, register, tombstoneRetention));",
        replace:
          "const done = Promise.resolve(context && register && releaseOne && round ? undefined : undefined);",
      },
    ],
    noticedBy: ["nothing is abandoned", "waiters are served"],
  },
  {
    name: "one nonce for all rounds",
    breaks: "the rollback of one round deletes, late, what the next one took",
    patches: [
      {
        file: "lock/acquire.ts",
        find: "    for (let attempts = 1; ; attempts += 1) {",
        replace: "    const request = this.#newRequest();\n    for (let attempts = 1; ; attempts += 1) {",
      },
      {
        file: "lock/acquire.ts",
        find: "      const request = this.#newRequest();\n",
        replace: "",
      },
    ],
    noticedBy: [...twoHolders, "a quorum decides", "requests are bounded", "waiters are served"],
  },
  {
    name: "timed-out take is not withdrawn",
    breaks: "an endpoint that did not answer keeps the key (redlock-universal)",
    patches: [
      {
        file: "quorum/rollback.ts",
        find: "if (refused && !everywhere) return",
        replace: 'if ((refused || outcome === "error") && !everywhere) return',
      },
    ],
    noticedBy: ["nothing is abandoned"],
  },
  {
    name: "overtaken rollback is not repeated",
    breaks: "a take that is answered after its rollback stands until its ttl",
    patches: [
      {
        file: "quorum/rollback.ts",
        find: 'if (late.outcome === "held" || late.outcome === "lost") return;',
        replace: "if (late) return;",
      },
    ],
    noticedBy: ["nothing is abandoned"],
  },
  {
    name: "abort ends the requests",
    breaks: "an aborted take is executed after its rollback, and nobody hears of it",
    patches: [
      {
        file: "quorum/round.ts",
        find: "  votes(): Vote[] {\n",
        replace: "  expire(): void {\n    this.#expire();\n  }\n\n  votes(): Vote[] {\n",
      },
      {
        file: "quorum/round.ts",
        find: "const giveUp = () => resolve(undefined);",
        replace: "const giveUp = () => resolve((round as PendingRound<Answer>).expire() as undefined);",
      },
    ],
    noticedBy: ["nothing is abandoned"],
  },
  {
    name: "round that is cut short ends its requests",
    breaks: "a take that is executed a little late stands until its ttl, in its own client's way",
    patches: [
      {
        file: "quorum/round.ts",
        find: '    this.#decide("unavailable");\n    this.#finish();',
        replace: "    this.#expire();",
      },
    ],
    noticedBy: ["nothing is abandoned"],
  },
  {
    name: "contenders wait for a silent endpoint",
    breaks:
      "each keeps what it was granted for a whole timeout, meets the others again, and nobody is served",
    patches: [
      {
        file: "quorum/round.ts",
        find: "const wait = Math.min(timeout, usefulWait(this.#latencies, this.#silent()));",
        replace: "const wait = timeout;",
      },
    ],
    noticedBy: ["waiters are served"],
  },
  {
    name: "rollback on the caller's signal",
    breaks: "a cancelled acquire leaves its partial grants (redsync, syncguard)",
    patches: [
      {
        file: "lock/acquire.ts",
        find: "    const register = rollbackRegister(request);",
        replace:
          "    if (this.#signal?.aborted) throw this.#signal.reason;\n    const register = rollbackRegister(request);",
      },
    ],
    noticedBy: ["nothing is abandoned"],
  },
  {
    name: "waits for ever",
    breaks: "the caller's bound on the waiting is not looked at",
    patches: [
      {
        file: "lock/acquire.ts",
        find: "const remainingWait = Math.min(wait, this.#limit) - this.#elapsed();",
        replace: "const remainingWait = wait < 0 ? 0 : this.#limit - this.#elapsed();",
      },
    ],
    noticedBy: ["calls end"],
  },
  {
    name: "pause outlasts the waiting",
    breaks: "the pause between two rounds ends after the time that the caller waits",
    patches: [
      {
        file: "lock/acquire.ts",
        find: "Math.min(wanted ?? this.#nextPause(round.elapsed()), longest)",
        replace: "Math.max(wanted ?? this.#nextPause(round.elapsed()), retryAfter ?? 0)",
      },
    ],
    noticedBy: ["calls end"],
  },
  {
    name: "only the first of several resources",
    breaks: "a lock of two resources takes one",
    patches: [
      {
        file: "lock/lock-request.ts",
        find: 'const own = keys ?? resources.map((resource) => keyOf(prefix, "lock", resource));',
        replace: 'const own = [keyOf(prefix, "lock", resources[0]!)];',
      },
    ],
    noticedBy: twoHolders,
  },
  {
    name: "plain commands through a client that repeats",
    breaks: "a lost reply and a retry: refused while our own key stands (@upstash/lock on @upstash/redis)",
    patches: [
      {
        file: "redis/register.ts",
        find: "if (call.endpoint.exactReplies && isPlain(register)) {\n    return plainAnswer(",
        replace: "if (isPlain(register)) {\n    return plainAnswer(",
      },
    ],
    noticedBy: ["refusals are true"],
  },
  {
    name: "own value is not recognised",
    breaks: "a take that is executed twice is refused because of itself (@upstash/lock)",
    patches: [
      {
        file: "redis/register-script.ts",
        find: "if found[i] and string.sub(found[i], from) == string.sub(value, from) then",
        replace:
          'if op ~= "acquire" and found[i] and string.sub(found[i], from) == string.sub(value, from) then',
      },
    ],
    noticedBy: ["refusals are true"],
  },
  {
    name: "failed acquire withdraws the owner's lock",
    breaks:
      "owner state is shared: a second acquire that fails takes the first handle's lock (@upstash/lock)",
    patches: [
      {
        file: "lock/lock-request.ts",
        find: "{ ...acquiredRegister(request), from: 1 }",
        replace: "acquiredRegister(request)",
      },
      { file: "redis/register-script.ts", find: "then return {0, marks} end", replace: "then end" },
    ],
    noticedBy: twoHolders,
  },
  {
    name: "refresh keeps the first handle's nonce",
    breaks: "two handles of an owner count on it, and the first one's failed acquire withdraws it",
    patches: [
      { file: "redis/register-script.ts", find: "if text ~= value and not", replace: "if false and not" },
    ],
    noticedBy: [...twoHolders, "holds survive"],
  },
  {
    name: "release ends whatever its owner holds",
    breaks: "executed late or twice, it ends the owner's next hold, and a stranger enters",
    patches: [{ file: "redis/register-script.ts", find: "then return {0, marks} end", replace: "then end" }],
    noticedBy: [...twoHolders, "holds survive"],
  },
  {
    name: "release deletes whatever stands",
    breaks: "nobody compares before deleting",
    patches: [
      {
        file: "redis/register-script.ts",
        find: "    other = found[i] and i or other\n",
        replace:
          '    other = found[i] and i or other\n    if op == "release" then redis.call("DEL", KEYS[i]) end\n',
      },
    ],
    noticedBy: twoAtOnce,
  },
  {
    name: "release reads, then deletes",
    breaks: "between a look at the value and its deletion the lock may become another's",
    patches: [
      {
        file: "redis/register.ts",
        find: '  if (isNative(call) && isPlain(register)) {\n    return plainAnswer(await send(call, ["DELEX"',
        replace:
          '  if (isPlain(register)) {\n    const [key] = register.keys;\n    const seen = await runScript(call, registerScript, [key!, key!, key!], ["look", "", 1, 1, 0]);\n    if ((seen as unknown[])[0] !== register.value) return { outcome: "lost" };\n    const [said] = (await runScript(call, registerScript, [key!], ["free", register.value, 1, 1, 0])) as unknown[];\n    return { outcome: said === 0 ? "lost" : "granted" };\n  }\n  if (isNative(call) && isPlain(register)) {\n    return plainAnswer(await send(call, ["DELEX"',
      },
    ],
    noticedBy: twoAtOnce,
  },
  {
    name: "release always succeeds",
    breaks: "the caller is told that it was freed, whatever the endpoints say",
    patches: [
      { file: "lock/lock.ts", find: 'const freed = result === "granted";', replace: "const freed = true;" },
    ],
    noticedBy: ["a quorum decides"],
  },
  {
    name: "no tombstone",
    breaks: "a take that is executed after its rollback holds a lock for nobody (the 180 s incident)",
    patches: [
      { file: "redis/register-script.ts", find: "if found[n + 1] or other or", replace: "if other or" },
    ],
    noticedBy: ["withdrawn stays withdrawn"],
  },
  {
    name: "short-lived tombstone",
    breaks: "the tombstone is gone before the request that it is for",
    patches: [
      {
        file: "lock/lock-request.ts",
        find: "export const tombstoneRetention = 60_000;",
        replace: "export const tombstoneRetention = 50;",
      },
    ],
    noticedBy: ["withdrawn stays withdrawn"],
  },
  {
    name: "release leaves no tombstone",
    breaks: "a take that is still on its way when the lock is released holds it for nobody",
    patches: [
      {
        file: "lock/lock.ts",
        find: "const isGuarded = this.#unsettled.includes(call.endpoint.name) ||",
        replace: "const isGuarded =",
      },
    ],
    noticedBy: ["withdrawn stays withdrawn"],
  },
  {
    name: "late execution undoes an extension",
    breaks: "a take that is executed a second time brings the end forward",
    patches: [
      {
        file: "redis/register-script.ts",
        find: 'math.max(redis.call("PTTL", KEYS[i]), ttl)',
        replace: "ttl",
      },
    ],
    noticedBy: ["validity is honest", ...twoHolders],
  },
];
