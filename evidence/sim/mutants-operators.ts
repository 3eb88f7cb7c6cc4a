import { type Mutant, patch } from "./mutant.ts";

/** Defects of what operators do, of counted runs, and of reading HTTP answers. */
export const operatorMutants: readonly Mutant[] = [
  {
    name: "verify ignores the end of the validity",
    breaks: "the answers come when the validity is over, and verify returns true",
    patches: [patch("lock/lock.ts verify", " && !this.#validity.loss", "")],
    noticedBy: ["verify is true"],
  },
  {
    name: "inspection counts different holders together",
    breaks: "two contenders with a part of the endpoints each look like one holder",
    patches: [patch("lock/inspect.ts mostFrequentHolder", "snapshot.holder === holder", "snapshot.holder")],
    noticedBy: ["inspections are true"],
  },
  {
    name: "a minority frees a lock",
    breaks: "one endpoint has freed it, and a quorum keeps it",
    patches: [patch("lock/inspect.ts forceRelease", "quorumOf(endpoints.length)", "1")],
    noticedBy: ["an operator frees it"],
  },
  {
    name: "forget removes a run under way",
    breaks: "its handler learns of it too late, and two handlers run",
    patches: [patch("idempotency/forget.ts remove", "&& !stays(text)", "")],
    noticedBy: ["a run is not forgotten"],
  },
  {
    name: "forget ignores silent endpoints",
    breaks: "an endpoint that did not answer keeps its copy, and the next run finds it",
    patches: [patch("idempotency/forget.ts nextStep", "silent === 0 ?", "silent >= 0 ?")],
    noticedBy: ["what is forgotten is gone"],
  },
  {
    name: "attempts are not raised",
    breaks: "a run reads the count of those before it, and does not write its own",
    patches: [patch("idempotency/attempts.ts countAttempt", "count > 1 &&", "count < 0 &&")],
    noticedBy: ["attempts are bounded"],
  },
  {
    name: "status of an answer is ignored",
    breaks: "a gateway's error with a plausible body counts as Redis's answer",
    patches: [patch("endpoints/post.ts postTo", 'status === 200 && "result"', '"result"')],
    noticedBy: ["a quorum decides", "refusals are true"],
  },
];
