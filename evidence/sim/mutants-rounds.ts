import { type Mutant, patch, twoAtOnce, twoHolders } from "./mutant.ts";

/** Defects of rounds: requests, votes, retries, rollbacks and releases. */
export const roundMutants: readonly Mutant[] = [
  {
    name: "half is a quorum",
    breaks: "rounding: 2 of 4 endpoints are not a majority",
    patches: [patch("quorum/tally.ts quorumOf", "(count >> 1) + 1", "(count + 1) >> 1")],
    noticedBy: [...twoAtOnce, "fences increase"],
  },
  {
    name: "requests have no timeout",
    breaks: "a request without an answer is awaited without a limit (node-redlock: extend hung)",
    patches: [patch("quorum/round.ts PendingRound", "timer(this.#timeout,", "timer(1e9,")],
    noticedBy: ["calls end", "validity is honest", "waiters are served"],
  },
  {
    name: "validity is not checked after acquire",
    breaks:
      "replies come after the ttl, and the lock is returned all the same (node-redlock, redis-semaphore)",
    patches: [patch("lock/acquire.ts #attempt", "lock.remaining() > 0", "lock")],
    noticedBy: ["validity is honest"],
  },
  {
    name: "partial grants are kept",
    breaks:
      "a failed round keeps its partial grants, and the next round fails because of them (node-redlock)",
    patches: [
      patch(
        "lock/acquire.ts #rollBack",
        "rollback(context, round, (call) => releaseOne(call, cell, tombstoneRetention))",
        "{ done: Promise.resolve() }",
      ),
    ],
    noticedBy: ["nothing is abandoned", "waiters are served"],
  },
  {
    name: "one nonce for all rounds",
    breaks: "a late rollback of one round deletes what the next round acquired",
    patches: [
      patch(
        "lock/acquire.ts #attempt",
        "request = this.#newRequest()",
        "request = (this.first ??= this.#newRequest())",
      ),
    ],
    noticedBy: [...twoHolders, "a quorum decides", "requests are bounded", "waiters are served"],
  },
  {
    name: "overtaken rollback is not repeated",
    breaks: "an acquire that is answered after its rollback stands until its ttl",
    patches: [
      patch("quorum/rollback.ts rollback", 'late.outcome === "held" || late.outcome === "lost"', "late"),
    ],
    noticedBy: ["nothing is abandoned"],
  },
  {
    name: "abort ends the requests",
    breaks: "an aborted acquire is executed after its rollback, and is never rolled back again",
    patches: [
      patch("quorum/round.ts votes", "votes(): Vote[] {", "expire() { this.#expire(); }\nvotes(): Vote[] {"),
      patch(
        "quorum/round.ts unlessAborted",
        "resolve(undefined)",
        "resolve((round as PendingRound<Answer>).expire() as undefined)",
      ),
    ],
    noticedBy: ["nothing is abandoned"],
  },
  {
    name: "contenders wait for a silent endpoint",
    breaks: "each keeps its partial grants for a whole timeout, meets the others again, and none is served",
    patches: [
      patch(
        "quorum/round.ts #conclude",
        "Math.min(this.#timeout, usefulWait(this.#latencies, this.#silent()))",
        "this.#timeout",
      ),
    ],
    noticedBy: ["waiters are served"],
  },
  {
    name: "only the first of several keys",
    breaks: "a lock on two resources acquires one of them",
    patches: [patch("lock/lock-request.ts heldCell", "resources.map(", "resources.slice(0, 1).map(")],
    noticedBy: twoHolders,
  },
  {
    name: "own value is not recognised",
    breaks: "an acquire that is executed twice is refused because of itself (@upstash/lock)",
    patches: [
      patch(
        "redis/cell.lua",
        "if found[i] and string.sub(",
        'if op ~= "acquire" and found[i] and string.sub(',
      ),
    ],
    noticedBy: ["refusals are true"],
  },
  {
    name: "refresh keeps the first handle's nonce",
    breaks: "two handles of an owner rely on one nonce, and a failed acquire of the first one rolls it back",
    patches: [patch("redis/cell.lua", "if text ~= value and not", "if false and not")],
    noticedBy: [...twoHolders, "holds survive"],
  },
  {
    name: "release ends any hold of its owner",
    breaks: "executed late or twice, it ends the owner's next hold, and another client enters",
    patches: [patch("redis/cell.lua", "then return {0, tags} end", "then end")],
    noticedBy: [...twoHolders, "holds survive"],
  },
  {
    name: "release reads, then deletes",
    breaks: "between the read and the deletion the lock may become another client's",
    patches: [
      patch(
        "redis/cell.ts",
        "import { cellScript } from",
        `import { freeScript } from "../lock/free.lua.ts";
import { peekScript } from "./peek.lua.ts";
import { cellScript } from`,
      ),
      patch(
        "redis/cell.ts release",
        "if (isNative(call) && isPlain(cell)) {",
        `if (isPlain(cell)) {
    const [key] = cell.keys;
    return (async () => {
      const seen = await runScript(call, peekScript, [key!, key!], ["peek"]);
      if ((seen as unknown[])[0] !== cell.value) return { outcome: "lost" };
      const [said] = (await runScript(call, freeScript, [key!], ["free", cell.value])) as unknown[];
      return { outcome: said === 0 ? "lost" : "granted" };
    })();
  }
  if (isNative(call) && isPlain(cell)) {`,
      ),
    ],
    noticedBy: twoAtOnce,
  },
  {
    name: "release deletes any value",
    breaks: "it does not compare before deleting",
    patches: [
      patch(
        "redis/cell.lua",
        "other = found[i] and i or other",
        'other = found[i] and i or other\nif op == "release" then redis.call("DEL", KEYS[i]) end',
      ),
    ],
    noticedBy: twoAtOnce,
  },
  {
    name: "no tombstone",
    breaks:
      "an acquire that is executed after its rollback leaves a lock without a holder (the 180 s incident)",
    patches: [patch("redis/cell.lua", "if found[n + 1] or other or", "if other or")],
    noticedBy: ["rolled back stays rolled back"],
  },
  {
    name: "release leaves no tombstone",
    breaks: "an acquire still on its way at the release leaves a lock without a holder",
    patches: [patch("lock/lock.ts #releaseOne", "this.#pendingAcquires.includes(call.endpoint.name) ||", "")],
    noticedBy: ["rolled back stays rolled back"],
  },
  {
    name: "late execution undoes an extension",
    breaks: "a second execution of an acquire shortens the validity",
    patches: [patch("redis/cell.lua", 'math.max(redis.call("PTTL", KEYS[i]), ttl)', "ttl")],
    noticedBy: ["validity is honest", ...twoHolders],
  },
  {
    name: "an address with a path is accepted",
    breaks: "the server runs the path as a command, and its OK counts as a grant",
    patches: [
      patch("endpoints/address.ts addressOf", "href !== origin + path", "!path"),
      patch("endpoints/address.ts addressOf", "{ href: address,", "{ href: href ?? address,"),
    ],
    noticedBy: [...twoHolders, "a quorum decides"],
  },
  {
    name: "answers of a pipeline are shifted",
    breaks: "each gets the answer to the command after its own: one that was refused is told that it holds",
    patches: [
      patch("endpoints/batch.ts Batches", "outcomes[index]!", "outcomes[(index + 1) % outcomes.length]!"),
    ],
    noticedBy: [...twoAtOnce, "a quorum decides", "refusals are true"],
    theme: "batches",
  },
  {
    name: "what waited for too long is sent all the same",
    breaks:
      "an acquire is executed after its caller was told that it was never sent, and is never rolled back",
    patches: [patch("endpoints/batch.ts Batches", "next.expiry.aborted", "false")],
    noticedBy: ["nothing is abandoned"],
    theme: "batches",
  },
  {
    name: "no window",
    breaks: "more is sent than the servers do in time, and most of what they do is rolled back",
    patches: [
      patch("endpoints/window.ts opened", "size: 100", "size: Infinity"),
      patch("endpoints/batch.ts Batches", "Math.ceil(size / Math.min(4, this.#maxRequests))", "1_000"),
    ],
    noticedBy: ["waiters are served", "nothing is abandoned"],
    theme: "batches",
  },
  {
    name: "a rollback without room is never sent",
    breaks: "where many requests are open, what a failed round acquired stands until its ttl",
    patches: [patch("quorum/rollback.ts sendRollback", "answer.isUnsent || answer.hasUnsent", "false")],
    noticedBy: ["nothing is abandoned"],
    theme: "batches",
  },
  {
    name: "a rollback names an unknown script",
    breaks: "its NOSCRIPT comes when nobody listens any more, and what was acquired stands until its ttl",
    patches: [
      patch("redis/script.ts runScript", " || call.sendsText", ""),
      patch("redis/script.ts runScript", "state === undefined || ", ""),
    ],
    noticedBy: ["nothing is abandoned"],
    theme: "servers",
  },
  {
    name: "a release waits for a silent endpoint",
    breaks: "each release takes a whole timeout while one endpoint is silent",
    patches: [
      patch("quorum/settled.ts mostlyDone", 'if ((await round.result) === "unavailable") return', "return"),
    ],
    noticedBy: ["calls end"],
    theme: "servers",
  },
  {
    name: "null is believed of everybody",
    breaks: "a gateway that answers null to everything gives a lock to two",
    patches: [patch("redis/cell.ts setOrGet", "other !== null || returnsValues.has(server)", "true")],
    noticedBy: [...twoAtOnce, "a quorum decides", "what is held stands"],
    theme: "servers",
  },
];
