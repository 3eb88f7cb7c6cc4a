import { type Mutant, twoAtOnce, twoHolders } from "./mutant.ts";

/** Defects of rounds: requests, votes, retries, rollbacks and releases. */
export const roundMutants: readonly Mutant[] = [
  {
    name: "even split is never decided",
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
    name: "requests have no timeout",
    breaks: "a request without an answer is awaited without a limit (node-redlock: extend hung)",
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
    breaks: "the quorum can be set to 1 of 3 (redlock-universal)",
    patches: [{ file: "quorum/tally.ts", find: "return (count >> 1) + 1;", replace: "return 1;" }],
    noticedBy: [...twoAtOnce, "fences increase"],
  },
  {
    name: "half is a quorum",
    breaks: "rounding: 2 of 4 endpoints are not a majority",
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
      // Without this, the final tally would correct it.
      {
        file: "lock/acquire.ts",
        find: "if (held || isRefused(round)) {",
        replace: "if (held) {",
      },
    ],
    noticedBy: ["refusals are true"],
  },
  {
    name: "failure is decided too early",
    breaks: "the order of answers decides whether contention or an outage is reported",
    patches: [
      {
        file: "quorum/tally.ts",
        find: "return granted + pending < quorum && refused + pending < veto ?",
        replace: "return granted + pending < quorum ?",
      },
      // Without this, the final tally would correct it.
      {
        file: "lock/acquire.ts",
        find: "if (held || isRefused(round)) {",
        replace: "if (held) {",
      },
    ],
    noticedBy: ["refusals are true"],
  },
  {
    name: "refusal counts as a grant",
    breaks: "null, which means that another client holds the lock, counts as success",
    patches: [
      {
        file: "redis/cell.ts",
        find: "if (reply === no) return { outcome: refused };",
        replace: "if (reply === no) return granted;",
      },
    ],
    noticedBy: ["a quorum decides", ...twoAtOnce],
  },
  {
    name: "validity is not checked after acquire",
    breaks:
      "replies come after the ttl, and the lock is returned all the same (node-redlock, redis-semaphore)",
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
    breaks:
      "a failed round keeps its partial grants, and the next round fails because of them (node-redlock)",
    patches: [
      {
        file: "lock/acquire.ts",
        find: "const { done } = rollback(context, round, (call) => releaseOne(call, cell, tombstoneRetention));",
        replace: "const done = Promise.resolve();",
      },
    ],
    noticedBy: ["nothing is abandoned", "waiters are served"],
  },
  {
    name: "one nonce for all rounds",
    breaks: "a late rollback of one round deletes what the next round acquired",
    patches: [
      {
        file: "lock/acquire.ts",
        find: "    for (;;) {\n      if (this.#signal?.aborted)",
        replace: "    const request = this.#newRequest();\n    for (;;) {\n      if (this.#signal?.aborted)",
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
    name: "timed-out acquire is not rolled back",
    breaks: "an endpoint that did not answer keeps the key (redlock-universal)",
    patches: [
      {
        file: "quorum/rollback.ts",
        find: "if (refused && !includeRefused) return",
        replace: 'if ((refused || outcome === "error") && !includeRefused) return',
      },
    ],
    noticedBy: ["nothing is abandoned"],
  },
  {
    name: "overtaken rollback is not repeated",
    breaks: "an acquire that is answered after its rollback stands until its ttl",
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
    breaks: "an aborted acquire is executed after its rollback, and is never rolled back again",
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
    name: "shortened round ends its requests",
    breaks: "an acquire that is executed a little late stands until its ttl and blocks its own client",
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
    breaks: "each keeps its partial grants for a whole timeout, meets the others again, and none is served",
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
    name: "rollback uses the caller's signal",
    breaks: "a cancelled acquire leaves its partial grants (redsync, syncguard)",
    patches: [
      {
        file: "lock/acquire.ts",
        find: "    const cell = rollbackCell(request);",
        replace:
          "    if (this.#signal?.aborted) throw this.#signal.reason;\n    const cell = rollbackCell(request);",
      },
    ],
    noticedBy: ["nothing is abandoned"],
  },
  {
    name: "waits forever",
    breaks: "the caller's limit on the waiting is ignored",
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
    breaks: "the pause between two rounds ends after the caller's wait",
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
    name: "only the first of several keys",
    breaks: "a lock on two resources acquires one of them",
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
    name: "plain commands through a client that retries",
    breaks:
      "after a lost reply, the retry is refused because of our own key (@upstash/lock on @upstash/redis)",
    patches: [
      {
        file: "redis/cell.ts",
        find: "if (call.endpoint.exactReplies && isPlain(cell)) {\n    return plainAnswer(",
        replace: "if (isPlain(cell)) {\n    return plainAnswer(",
      },
    ],
    noticedBy: ["refusals are true"],
  },
  {
    name: "own value is not recognised",
    breaks: "an acquire that is executed twice is refused because of itself (@upstash/lock)",
    patches: [
      {
        file: "redis/cell-script.ts",
        find: "if found[i] and string.sub(found[i], from) == string.sub(value, from) then",
        replace:
          'if op ~= "acquire" and found[i] and string.sub(found[i], from) == string.sub(value, from) then',
      },
    ],
    noticedBy: ["refusals are true"],
  },
  {
    name: "failed acquire rolls back the owner's lock",
    breaks:
      "owner state is shared: a second acquire that fails deletes the first handle's lock (@upstash/lock)",
    patches: [
      {
        file: "lock/lock-request.ts",
        find: "{ ...acquiredCell(request), compareFrom: 1 }",
        replace: "acquiredCell(request)",
      },
      { file: "redis/cell-script.ts", find: "then return {0, marks} end", replace: "then end" },
    ],
    noticedBy: twoHolders,
  },
  {
    name: "refresh keeps the first handle's nonce",
    breaks: "two handles of an owner rely on one nonce, and a failed acquire of the first one rolls it back",
    patches: [
      { file: "redis/cell-script.ts", find: "if text ~= value and not", replace: "if false and not" },
    ],
    noticedBy: [...twoHolders, "holds survive"],
  },
  {
    name: "release ends any hold of its owner",
    breaks: "executed late or twice, it ends the owner's next hold, and another client enters",
    patches: [{ file: "redis/cell-script.ts", find: "then return {0, marks} end", replace: "then end" }],
    noticedBy: [...twoHolders, "holds survive"],
  },
  {
    name: "release deletes any value",
    breaks: "it does not compare before deleting",
    patches: [
      {
        file: "redis/cell-script.ts",
        find: "    other = found[i] and i or other\n",
        replace:
          '    other = found[i] and i or other\n    if op == "release" then redis.call("DEL", KEYS[i]) end\n',
      },
    ],
    noticedBy: twoAtOnce,
  },
  {
    name: "release reads, then deletes",
    breaks: "between the read and the deletion the lock may become another client's",
    patches: [
      {
        file: "redis/cell.ts",
        find: '  if (isNative(call) && isPlain(cell)) {\n    return plainAnswer(await send(call, ["DELEX"',
        replace:
          '  if (isPlain(cell)) {\n    const [key] = cell.keys;\n    const seen = await runScript(call, cellScript, [key!, key!, key!], ["look", "", 1, 1, 0]);\n    if ((seen as unknown[])[0] !== cell.value) return { outcome: "lost" };\n    const [said] = (await runScript(call, cellScript, [key!], ["free", cell.value, 1, 1, 0])) as unknown[];\n    return { outcome: said === 0 ? "lost" : "granted" };\n  }\n  if (isNative(call) && isPlain(cell)) {\n    return plainAnswer(await send(call, ["DELEX"',
      },
    ],
    noticedBy: twoAtOnce,
  },
  {
    name: "release always succeeds",
    breaks: "the release returns true regardless of the endpoints' answers",
    patches: [
      { file: "lock/lock.ts", find: 'const freed = result === "granted";', replace: "const freed = true;" },
    ],
    noticedBy: ["a quorum decides"],
  },
  {
    name: "no tombstone",
    breaks:
      "an acquire that is executed after its rollback leaves a lock without a holder (the 180 s incident)",
    patches: [{ file: "redis/cell-script.ts", find: "if found[n + 1] or other or", replace: "if other or" }],
    noticedBy: ["rolled back stays rolled back"],
  },
  {
    name: "short-lived tombstone",
    breaks: "the tombstone expires before the late request that it is for",
    patches: [
      {
        file: "lock/lock-request.ts",
        find: "export const tombstoneRetention = 60_000;",
        replace: "export const tombstoneRetention = 50;",
      },
    ],
    noticedBy: ["rolled back stays rolled back"],
  },
  {
    name: "release leaves no tombstone",
    breaks: "an acquire still on its way at the release leaves a lock without a holder",
    patches: [
      {
        file: "lock/lock.ts",
        find: "this.#pendingAcquires.includes(call.endpoint.name) ||",
        replace: "",
      },
    ],
    noticedBy: ["rolled back stays rolled back"],
  },
  {
    name: "late execution undoes an extension",
    breaks: "a second execution of an acquire shortens the validity",
    patches: [
      {
        file: "redis/cell-script.ts",
        find: 'math.max(redis.call("PTTL", KEYS[i]), ttl)',
        replace: "ttl",
      },
    ],
    noticedBy: ["validity is honest", ...twoHolders],
  },
  {
    name: "an address with a path is accepted",
    breaks: "the server runs the path as a command, and its OK counts as a grant",
    patches: [
      { file: "endpoints/address.ts", find: "|| href !== origin + path)", replace: "|| !path)" },
      {
        file: "endpoints/address.ts",
        find: "return { href: address,",
        replace: "return { href: href ?? address,",
      },
    ],
    noticedBy: [...twoHolders, "a quorum decides"],
  },
];
