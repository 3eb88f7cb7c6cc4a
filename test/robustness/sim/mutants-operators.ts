import { type Mutant, twoHolders } from "./mutant.ts";

/** Defects of what operators do, of counted runs, of handed over locks, and of reading HTTP answers. */
export const operatorMutants: readonly Mutant[] = [
  {
    name: "verify believes the validity",
    breaks: "verify returns true although a quorum no longer has the lock",
    patches: [
      {
        file: "lock/lock.ts",
        find: '    if (result === "refused") this.#validity.lose("its token is gone from a quorum");\n    return result === "granted" && !this.#validity.loss;',
        replace: "    return !this.#validity.loss;",
      },
    ],
    noticedBy: ["verify is true"],
  },
  {
    name: "verify ignores the end of the validity",
    breaks: "the answers come when the validity is over, and verify returns true",
    patches: [
      {
        file: "lock/lock.ts",
        find: 'return result === "granted" && !this.#validity.loss;',
        replace: 'return result === "granted";',
      },
    ],
    noticedBy: ["verify is true"],
  },
  {
    name: "validity outlasts the deadline",
    breaks: "the platform stops the code while the lock still looks valid",
    patches: [
      {
        file: "lock/validity.ts",
        find: "return Math.min(this.#budget - this.#elapsed(), limit - elapsed());",
        replace: "return Math.min(this.#budget - this.#elapsed(), limit < 0 ? elapsed() : Infinity);",
      },
    ],
    noticedBy: ["validity is honest"],
  },
  {
    name: "release replies and deletes nothing",
    breaks: "the release returns true, and the lock stands until its ttl",
    patches: [
      {
        file: "redis/cell-script.ts",
        find: 'for _, i in ipairs(mine) do redis.call("DEL", KEYS[i]) end',
        replace: "",
      },
    ],
    noticedBy: ["a quorum decides"],
  },
  {
    name: "resumed lock has a whole ttl",
    breaks: "the time that has passed before and during the handoff is not subtracted",
    patches: [
      {
        file: "lock/handoff.ts",
        find: "const remaining = validUntil - runtime.now();",
        replace: "const remaining = Infinity;",
      },
    ],
    noticedBy: [...twoHolders, "what is held stands"],
  },
  {
    name: "inspection counts different holders together",
    breaks: "two contenders with a part of the endpoints each look like one holder",
    patches: [
      {
        file: "lock/inspect.ts",
        find: "holder && snapshot.holder === holder",
        replace: "holder && snapshot.holder",
      },
    ],
    noticedBy: ["inspections are true"],
  },
  {
    name: "inspection takes silence for a free lock",
    breaks: "a silent endpoint may complete the holder's quorum, and the lock is reported as free",
    patches: [
      {
        file: "lock/inspect.ts",
        find: "if (!held && expiries.length + silent >= quorum)",
        replace: "if (snapshots.length < quorum)",
      },
    ],
    noticedBy: ["inspections are true"],
  },
  {
    name: "a minority frees a lock",
    breaks: "one endpoint has freed it, and a quorum keeps it",
    patches: [
      {
        file: "lock/inspect.ts",
        find: "if (answers.length < quorumOf(endpoints.length))",
        replace: "if (answers.length < 1)",
      },
    ],
    noticedBy: ["an operator frees it"],
  },
  {
    name: "forget removes a run under way",
    breaks: "its handler learns of it too late, and two handlers run",
    patches: [
      {
        file: "idempotency/forget.ts",
        find: "if (text !== undefined && !stays(text))",
        replace: "if (text !== undefined)",
      },
    ],
    noticedBy: ["a run is not forgotten"],
  },
  {
    name: "forget ignores silent endpoints",
    breaks: "an endpoint that did not answer keeps its copy, and the next run finds it",
    patches: [
      {
        file: "idempotency/forget.ts",
        find: 'if (isClean) return silent === 0 ? "done" : "unclear";',
        replace: 'if (isClean) return "done";',
      },
    ],
    noticedBy: ["what is forgotten is gone"],
  },
  {
    name: "one attempt too many",
    breaks: "a key is dead only after one more run than maxAttempts",
    patches: [
      {
        file: "idempotency/attempts.ts",
        find: 'return count > maxAttempts ? { kind: "dead"',
        replace: 'return count > maxAttempts + 1 ? { kind: "dead"',
      },
      {
        file: "idempotency/attempts.ts",
        find: "count > 1 && count <= maxAttempts",
        replace: "count > 1 && count <= maxAttempts + 1",
      },
    ],
    noticedBy: ["attempts are bounded"],
  },
  {
    name: "attempts are not raised",
    breaks: "a run reads the count of those before it, and does not write its own",
    patches: [
      {
        file: "idempotency/attempts.ts",
        find: 'if (result === "granted" && count > 1 && count <= maxAttempts) {',
        replace: "if (count < 0) {",
      },
    ],
    noticedBy: ["attempts are bounded"],
  },
  {
    name: "status of an answer is ignored",
    breaks: "a gateway's error with a plausible body counts as Redis's answer",
    patches: [
      {
        file: "endpoints/http.ts",
        find: "if (status === 200 && reply &&",
        replace: "if (reply &&",
      },
    ],
    noticedBy: ["a quorum decides", "refusals are true"],
  },
  {
    name: "result beside an error counts",
    breaks: "an answer that reports an error counts as a success",
    patches: [
      {
        file: "endpoints/http.ts",
        find: ' && !Object.hasOwn(reply, "error")) {',
        replace: ") {",
      },
    ],
    noticedBy: ["a quorum decides", "refusals are true"],
  },
];
