import { type Mutant, twoAtOnce } from "./mutant.ts";

/** Defects of idempotency records, and of the runs that own them. */
export const idempotencyMutants: readonly Mutant[] = [
  {
    name: "lost reply to a begin counts as busy",
    breaks: "the run's own record is taken for another's: no run before the lease ends (Powertools)",
    patches: [
      {
        file: "redis/cell.ts",
        find: "if (other === null || other === value) return granted;",
        replace: "if (other === null) return granted;",
      },
    ],
    noticedBy: ["refusals are true"],
  },
  {
    name: "completes without comparing",
    breaks: "a late first handler overwrites the second one's result (Powertools, hono-idempotency)",
    patches: [
      {
        file: "redis/cell-script.ts",
        find: "if found[i] and string.sub(found[i], from) == string.sub(value, from) then",
        replace:
          'if found[i] and (op == "extend" and string.find(ARGV[6], "^[CN]1 ") or string.sub(found[i], from) == string.sub(value, from)) then',
      },
    ],
    noticedBy: ["a stored result stands", "replays agree", ...twoAtOnce],
  },
  {
    name: "failure deletes any record",
    breaks: "a late first handler that throws deletes the second one's record (node-idempotency)",
    patches: [
      {
        file: "idempotency/execution.ts",
        find: "rollback(settings, round, (call) => operations.free(call)).done;",
        replace:
          "rollback(settings, round, (call) => release(call, { ...operations.own, from: 2_048 })).done;",
      },
      {
        file: "idempotency/execution.ts",
        find: 'import type { CellAnswer } from "../redis/cell.ts";',
        replace: 'import { type CellAnswer, release } from "../redis/cell.ts";',
      },
      { file: "redis/cell-script.ts", find: "then return {0, marks} end", replace: "then end" },
    ],
    noticedBy: ["a stored result stands", "replays agree", ...twoAtOnce],
  },
  {
    name: "failed handler keeps its key",
    breaks: "no retry is possible before the lease ends",
    patches: [
      {
        file: "idempotency/execution.ts",
        find: "const free = () => rollback(settings, round, (call) => operations.free(call)).done;",
        replace: "const free = () => Promise.resolve();",
      },
    ],
    noticedBy: ["nothing is abandoned"],
  },
  {
    name: "failed begin keeps its partial grants",
    breaks: "contenders with partial grants block each other",
    patches: [
      {
        file: "idempotency/run.ts",
        find: "if (!decided) return claim.operations.free(call);",
        replace: 'if (!decided) return Promise.resolve({ outcome: "lost" });',
      },
    ],
    noticedBy: ["nothing is abandoned", "waiters are served"],
  },
  {
    name: "one expiry for lease and result",
    breaks: "a crash blocks the key for 24 hours (Powertools)",
    patches: [
      {
        file: "idempotency/claim.ts",
        find: "acquireOrRead(call, own, lease)",
        replace: "acquireOrRead(call, own, 86_400_000)",
      },
    ],
    noticedBy: ["waiters are served", "calls end"],
  },
  {
    name: "record without a ttl",
    breaks: "an option that the client ignores: records stay forever (hono-idempotency on @upstash/redis)",
    patches: [
      {
        file: "redis/cell.ts",
        find: '["SET", keys[0]!, value, "NX", "GET", "PX", ttl]',
        replace: '["SET", keys[0]!, value, "NX", "GET"]',
      },
    ],
    noticedBy: ["every key expires"],
  },
  {
    name: "result returned before it is decided",
    breaks: "a result that a minority has is replayed, while another run may still store a different one",
    patches: [
      {
        file: "idempotency/run.ts",
        find: 'if (!state.decided && !(await this.#bringToQuorum(claim, state))) return { kind: "split-vote" };',
        replace: "",
      },
    ],
    noticedBy: ["replays agree", "a stored result stands"],
  },
  {
    name: "one endpoint decides a result",
    breaks: "a result on a single endpoint counts as decided",
    patches: [
      {
        file: "idempotency/record.ts",
        find: "complete.times >= quorum",
        replace: "complete.times > 0",
      },
    ],
    noticedBy: ["replays agree", "a stored result stands"],
  },
  {
    name: "lease is not checked after the begin",
    breaks: "a handler begins when its lease is over",
    patches: [
      {
        file: "idempotency/run.ts",
        find: 'const mayRun = pass.state.kind === "run" && execution.validity.remaining() > 0;',
        replace: 'const mayRun = pass.state.kind === "run";',
      },
    ],
    noticedBy: ["validity is honest", ...twoAtOnce],
  },
  {
    name: "lease counted from the answers",
    breaks: "the lease begins when the endpoint executes the begin, not when its answer arrives",
    patches: [
      {
        file: "idempotency/execution.ts",
        find: "elapsed: claim.round.elapsed,",
        replace: "elapsed: stopwatch(settings.runtime),",
      },
      {
        file: "idempotency/execution.ts",
        find: 'import { runInBackground } from "../runtime.ts";',
        replace:
          'import { runInBackground } from "../runtime.ts";\nimport { stopwatch } from "../runtime.ts";',
      },
    ],
    noticedBy: twoAtOnce,
  },
  {
    name: "refused completion counts as stored",
    breaks: "the first handler's result counts as stored although the second one's is",
    patches: [
      {
        file: "idempotency/complete.ts",
        find: "return taken;",
        replace: 'return { ...taken, outcome: "granted" };',
      },
    ],
    noticedBy: ["a stored result stands", "replays agree"],
  },
  {
    name: "unstored result counts as stored",
    breaks: "no quorum has the result, and nothing retries",
    patches: [
      {
        file: "idempotency/complete.ts",
        find: 'if (first.roundResult !== "unavailable") return first;',
        replace: 'return { ...first, roundResult: first.roundResult === "refused" ? "refused" : "granted" };',
      },
    ],
    noticedBy: ["a stored result stands", "replays agree"],
  },
  {
    name: "result without JSON fails its run",
    breaks: "the effect has happened, and every retry repeats it",
    patches: [
      {
        file: "idempotency/result.ts",
        find: 'return { unstored: "unserializable", value, error };',
        replace: "throw error;",
      },
    ],
    noticedBy: ["calls end"],
  },
  {
    name: "too large a result is sent again and again",
    breaks: "it is never stored, and the effect is repeated after every lease",
    patches: [
      {
        file: "idempotency/complete.ts",
        find: "this.#sizeRefusals.set(endpoint, answer.cause);",
        replace: "",
      },
    ],
    noticedBy: ["requests are bounded", "waiters are served"],
  },
  {
    name: "claim outlives the deadline",
    breaks: "a run that its platform stopped keeps its key for the rest of the lease",
    patches: [
      {
        file: "idempotency/run-request.ts",
        find: "Math.ceil(Math.min(ttl, remainingMs + timeout))",
        replace: "Math.ceil(Math.min(ttl, remainingMs + 30_000))",
      },
    ],
    noticedBy: ["nothing is abandoned"],
  },
  {
    name: "single flights share keys with runs",
    breaks: "a flight that fails frees the record of a run, which then runs again",
    patches: [
      {
        file: "idempotency/single-flight.ts",
        find: 'const options = { scope, kind: "flight",',
        replace: 'const options = { scope, kind: "run",',
      },
      {
        file: "idempotency/single-flight.ts",
        find: '{ scope, kind: "flight" }, stays',
        replace: '{ scope, kind: "run" }, stays',
      },
    ],
    noticedBy: ["a stored result stands", "replays agree"],
  },
];
