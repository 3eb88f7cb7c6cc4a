import { type Mutant, patch, twoAtOnce, twoHolders } from "./mutant.ts";

/** Defects of rounds: requests, votes, retries, rollbacks and releases. */
export const roundMutants: readonly Mutant[] = [
  {
    name: "half is a quorum",
    breaks: "rounding: 2 of 4 endpoints are not a majority",
    patches: patch("quorum/tally.ts quorumOf", "(count >> 1) + 1", "(count + 1) >> 1"),
    noticedBy: [...twoAtOnce, "fences increase"],
  },
  {
    name: "requests have no timeout",
    breaks: "a request without an answer is awaited without a limit (node-redlock: extend hung)",
    patches: patch("quorum/round.ts Round", "timer(this.#timeout,", "timer(1e9,"),
    noticedBy: ["calls end", "validity is honest", "waiters are served"],
  },
  {
    name: "one nonce for all rounds",
    breaks: "a late rollback of one round deletes what the next round acquired",
    patches: patch(
      "lock/acquire.ts #claim",
      "protocol.cell(randomToken(runtime))",
      "protocol.cell((this.first ??= randomToken(runtime)))",
    ),
    noticedBy: [...twoHolders, "a quorum decides", "requests are bounded", "waiters are served"],
  },
  {
    name: "overtaken rollback is not repeated",
    breaks: "an acquire that is answered after its rollback stands until its ttl",
    patches: patch("quorum/undo.ts repeatIfLate", "isLate || isDropped(error)", "isDropped(error)"),
    noticedBy: ["nothing is abandoned"],
  },
  {
    name: "own value is not recognised",
    breaks: "an acquire that is executed twice is refused because of itself (@upstash/lock)",
    patches: patch("twins/cell-twin.ts refusal", "value === next ||", ""),
    noticedBy: ["refusals are true"],
  },
  {
    name: "end deletes what is another's",
    breaks: "it does not compare before deleting: a late one ends the next holder's lock",
    patches: patch("twins/cell-twin.ts end", "found[index] === expected", "(found[index] ?? null) !== null"),
    noticedBy: ["each key by itself", ...twoAtOnce],
  },
  {
    name: "no tombstone",
    breaks:
      "an acquire that is executed after its rollback leaves a lock without a holder (the 180 s incident)",
    patches: patch("twins/cell-twin.ts refusal", "(found[cells.length] ?? null) === null", "found"),
    noticedBy: ["rolled back stays rolled back"],
  },
  {
    name: "keep ignores the tombstone",
    breaks: "a handover that is executed after the release puts a nonce there that nobody has",
    patches: patch(
      "twins/cell-twin.ts refusal",
      "(found[cells.length] ?? null) === null",
      "(found[cells.length] ?? null) === null || keeps",
    ),
    noticedBy: ["rolled back stays rolled back"],
  },
  {
    name: "a tombstone does not say whose value was found",
    breaks: "a second execution of an end finds nothing, and a release that has freed the lock returns false",
    patches: patch("twins/cell-twin.ts end", "foundAll ? token : (old ?? 1)", "1"),
    noticedBy: ["a quorum decides"],
  },
  {
    name: "an address with a path is accepted",
    breaks: "the server runs the path as a command, and its OK counts as a grant",
    patches: [
      ...patch("endpoints/address.ts addressOf", "href !== origin + path", "!path"),
      ...patch("endpoints/address.ts addressOf", "{ href: address,", "{ href: href ?? address,"),
    ],
    noticedBy: [...twoHolders, "a quorum decides"],
  },
  {
    name: "answers of a pipeline are shifted",
    breaks: "each gets the answer to the command after its own: one that was refused is told that it holds",
    patches: patch(
      "endpoints/batch.ts Batches",
      "outcomes[index]!",
      "outcomes[(index + 1) % outcomes.length]!",
    ),
    noticedBy: [...twoAtOnce, "a quorum decides", "refusals are true"],
    theme: "batches",
  },
  {
    name: "turns without a bound",
    breaks: "more is sent than the servers do in time, and most of what they do is rolled back",
    patches: patch("endpoints/room.ts Room", "this.#taken >= this.#places && sharesRequests()", "false"),
    noticedBy: ["waiters are served", "nothing is abandoned"],
    theme: "batches",
  },
  {
    name: "a client that queues is given everything",
    breaks:
      "what was given up fills its queue, and what follows is late, the application's own commands, too",
    patches: patch("endpoints/hand-over.ts sendThrough", "!room.take()", "false"),
    noticedBy: ["waiters are served", "requests are bounded"],
    theme: "batches",
  },
];
