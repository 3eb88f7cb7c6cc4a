import { type Mutant, patch, twoAtOnce } from "./mutant.ts";

/** Defects of idempotent runs, of what operators do, and of reading HTTP answers. */
export const runMutants: readonly Mutant[] = [
  {
    name: "completes without comparing",
    breaks: "a late first handler overwrites the second one's result (Powertools, hono-idempotency)",
    patches: patch(
      "twins/cell-twin.ts refusal",
      "value === null)) continue;",
      "value === null) || (value !== null && /^[CN]1 /.test(next))) continue;",
    ),
    noticedBy: ["a stored result stands", "replays agree", ...twoAtOnce],
  },
  {
    name: "one expiry for lease and result",
    breaks: "a crash blocks the key for 24 hours (Powertools)",
    patches: patch(
      "idempotency/protocol.ts claim",
      "claimOrRead(call, cell, lease)",
      "claimOrRead(call, cell, 86_400_000)",
    ),
    noticedBy: ["waiters are served", "calls end"],
  },
  {
    name: "result returned before it is decided",
    breaks: "a result that a minority has is replayed, while another run may still store a different one",
    patches: patch("idempotency/protocol.ts #replay", "decided ||", "found ||"),
    noticedBy: ["replays agree", "a stored result stands"],
  },
  {
    name: "single flights share keys with runs",
    breaks: "a flight that fails frees the record of a run, which then runs again",
    patches: patch("idempotency/single-flight.ts singleFlight", 'kind: "flight"', 'kind: "run"'),
    noticedBy: ["a stored result stands", "replays agree"],
  },
  {
    name: "key claimed while the lock is refused",
    breaks: "a run that waits for the lock keeps its key from others, or for nobody",
    patches: patch(
      "twins/cell-twin.ts refusal",
      'return [0, index + 1, remaining, value ?? ""];',
      'if (!keeps && index > 0) call("SET", cells[0]!.key, cells[0]!.next, "PX", cell.ttl);\n    return [0, index + 1, remaining, value ?? ""];',
    ),
    noticedBy: ["all or none", "nothing is abandoned"],
    theme: "locked-runs",
  },
  {
    name: "verify ignores the end of the validity",
    breaks: "the answers come when the validity is over, and verify returns true",
    patches: patch("lock/lock.ts verify", " && !this.#validity.loss", ""),
    noticedBy: ["verify is true"],
  },
  {
    name: "a minority frees a lock",
    breaks: "one endpoint has freed it, and a quorum keeps it",
    patches: patch(
      "quorum/query.ts query",
      "quorumOf(context.endpoints.length)",
      '(subject[0] === "free" ? 1 : quorumOf(context.endpoints.length))',
    ),
    noticedBy: ["an operator frees it"],
    theme: "operators",
  },
  {
    name: "forget removes a run under way",
    breaks: "its handler learns of it too late, and two handlers run",
    patches: patch("idempotency/forget.ts remove", "&& !isPending(text)", ""),
    noticedBy: ["a run is not forgotten"],
  },
  {
    name: "forget ignores silent endpoints",
    breaks: "an endpoint that did not answer keeps its copy, and the next run finds it",
    patches: patch("idempotency/forget.ts nextStep", "silent === 0 ?", "silent >= 0 ?"),
    noticedBy: ["what is forgotten is gone"],
  },
  {
    name: "attempts are not raised",
    breaks: "a run reads the count of those before it, and does not write its own",
    patches: patch("idempotency/attempts.ts countRun", "count > 1 &&", "count < 0 &&"),
    noticedBy: ["attempts are bounded"],
  },
  {
    name: "status of an answer is ignored",
    breaks: "a gateway's error with a plausible body counts as Redis's answer",
    patches: patch("endpoints/post.ts postTo", 'status === 200 && "result"', '"result"'),
    noticedBy: ["a quorum decides", "refusals are true"],
  },
];
