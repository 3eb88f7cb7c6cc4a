import { type Mutant, twoHolders } from "./mutant.ts";

/** Defects of fence counters, of restores, and of handoffs. */
export const keepingMutants: readonly Mutant[] = [
  {
    name: "extensions do not prolong the counters",
    breaks: "a lock that is held longer than the retention outlives its fence counter",
    patches: [
      {
        file: "lock/lock.ts",
        find: "this.fence !== undefined && this.#sinceCounters() + ttl > this.#request.fenceRetention",
        replace: "ttl < 0",
      },
    ],
    noticedBy: ["fences increase"],
  },
  {
    name: "counters in the future expire too early",
    breaks:
      "a client whose clock is ahead draws a fence, and after the retention the next client draws a smaller one",
    patches: [
      {
        file: "redis/cell-script.ts",
        find: "kept = kept + math.max(0, fence -",
        replace: "kept = kept + 0 * math.max(0, fence -",
      },
    ],
    noticedBy: ["fences increase"],
  },
  {
    name: "handoff leaves the giver's handle alive",
    breaks: "its automatic extension goes on, and shortens the receiver's longer one",
    patches: [
      {
        file: "lock/handoff.ts",
        find: "  lock.abandon();\n  const {",
        replace: "  const {",
      },
    ],
    noticedBy: twoHolders,
  },
  {
    name: "resume takes nothing over",
    breaks: "of two processes that have the same message, both resume the lock",
    patches: [
      {
        file: "lock/handoff.ts",
        find: "if (takeOver && !immediate) await lock.extend();",
        replace: "void immediate;",
      },
      { file: "lock/handoff.ts", find: "nonce: randomToken(runtime), earlier", replace: "nonce, earlier" },
    ],
    noticedBy: twoHolders,
  },
  {
    name: "restore requests are not remembered",
    breaks: "the release leaves no tombstone, and a late restore request is executed after it",
    patches: [
      {
        file: "lock/lock.ts",
        find: "        await this.#settle(endpoint.name, request!);\n",
        replace: "        await request;\n",
      },
    ],
    noticedBy: ["rolled back stays rolled back"],
  },
  {
    name: "restore overwrites another's value",
    breaks: "another holder loses an endpoint, or a lock that a quorum has lost comes back",
    patches: [
      {
        file: "redis/cell-script.ts",
        find: "if found[n + 1] or other or (op ==",
        replace: 'if found[n + 1] or (other and op ~= "restore") or (op ==',
      },
      {
        file: "redis/cell-script.ts",
        find: "  if ttl == 0 then\n    text",
        replace:
          '  if op == "restore" then\n    text = ARGV[6]\n    redis.call("SET", KEYS[i], text, "PX", ttl)\n  elseif ttl == 0 then\n    text',
      },
    ],
    noticedBy: [...twoHolders, "holds survive"],
  },
];
