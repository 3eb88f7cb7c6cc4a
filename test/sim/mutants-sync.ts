import type { Mutant } from "./mutant.ts";

/** In the synchronizers. Only worlds of synchronizers can notice them. */
export const syncMutants: readonly Mutant[] = [
  {
    name: "permits are counted, not slots",
    breaks:
      "each endpoint gives out any of its slots, so a quorum may be of different ones (redis-semaphore)",
    patches: [{ file: "sync/slots.ts", find: "      if (count > 1) return [proposed];\n", replace: "" }],
    noticedBy: ["permits within the limit", "one holder per slot", "linearizable"],
  },
  {
    name: "another limit is not looked at",
    breaks: "somebody who has another limit configured gets a permit beside the others",
    patches: [
      {
        file: "sync/slots.ts",
        find: "if found[1] and found[1] ~= limit then",
        replace: "if false then",
      },
    ],
    noticedBy: ["permits within the limit"],
  },
  {
    name: "the limit ends before its permits",
    breaks: "a short permit cuts the time for which the limit of a longer one stands",
    patches: [
      {
        file: "sync/slots.ts",
        find: 'math.max(ttl, least, redis.call("PTTL", KEYS[1])))',
        replace: "ttl)",
      },
    ],
    noticedBy: ["permits within the limit"],
  },
  {
    name: "late execution undoes a permit's extension",
    breaks: "a take that is executed a second time brings the end forward",
    patches: [
      {
        file: "sync/slots.ts",
        find: 'redis.call("SET", KEYS[place], value, "PX", math.max(ttl, least))',
        replace: 'redis.call("SET", KEYS[place], value, "PX", ttl)',
      },
    ],
    noticedBy: ["validity is honest", "one holder per slot", "permits within the limit", "linearizable"],
  },
  {
    name: "one endpoint's limit is everybody's",
    breaks: "a wrong limit that only a minority has heard of is reported as the one in use",
    patches: [
      {
        file: "sync/slots.ts",
        find: "others.length > count - quorumOf(count)",
        replace: "others.length > 0",
      },
    ],
    noticedBy: ["refusals are true", "waiters are served"],
  },
  {
    name: "a run begins before its interval",
    breaks: "the claim ends after its ttl, and the next replica runs in the same interval",
    patches: [{ file: "sync/once.ts", find: "  await confirm(settings, outcome, every);\n", replace: "" }],
    noticedBy: ["a quorum decides", "one run per interval"],
  },
  {
    name: "an interval ends with its run",
    breaks: "the claim is given back, and whoever comes a little later runs again",
    patches: [
      { file: "sync/once.ts", find: "    outcome.abandon();\n", replace: "    await outcome.release();\n" },
    ],
    noticedBy: ["one run per interval"],
  },
  {
    name: "a claim counts as an interval",
    breaks: "replicas go away because of a claim that then comes to nothing, and nobody runs",
    patches: [
      {
        file: "sync/once.ts",
        find: "return held && retryAfter > Math.max(ttl, left)",
        replace: "return held",
      },
    ],
    noticedBy: ["refusals are true"],
  },
];
