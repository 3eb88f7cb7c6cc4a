import { type Mutant, twoHolders } from "./mutant.ts";

/** In what keeps a lock: its counters, what is put back where it was lost, and the way to another process. */
export const keepingMutants: readonly Mutant[] = [
  {
    name: "extensions do not renew the counters",
    breaks: "a lock that is held for longer than the retention outlives its fence",
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
    name: "counters forget what is in the future",
    breaks:
      "a client whose clock is ahead draws a fence, and after the retention the next client a smaller one",
    patches: [
      {
        file: "redis/register-script.ts",
        find: "kept = kept + math.max(0, fence -",
        replace: "kept = kept + 0 * math.max(0, fence -",
      },
    ],
    noticedBy: ["fences increase"],
  },
  {
    name: "hand-over leaves the giver's handle alive",
    breaks: "its automatic extension goes on, and cuts the receiver's longer one",
    patches: [
      {
        file: "lock/lock.ts",
        find: "    validity.release();\n    this.#isGone = true;\n    return {",
        replace: "    return {",
      },
    ],
    noticedBy: twoHolders,
  },
  {
    name: "what was put back is not remembered",
    breaks: "the release leaves no tombstone, and the request that puts the lock back is executed after it",
    patches: [
      {
        file: "lock/lock.ts",
        find: "        await this.#settle(endpoint.name, request!);\n",
        replace: "        await request;\n",
      },
    ],
    noticedBy: ["withdrawn stays withdrawn"],
  },
  {
    name: "puts back over what stands there",
    breaks: "another's part is taken from it, or a lock is brought back that a quorum has lost",
    patches: [
      {
        file: "redis/register-script.ts",
        find: "if found[n + 1] or other or (op ==",
        replace: 'if found[n + 1] or (other and op ~= "restore") or (op ==',
      },
      {
        file: "redis/register-script.ts",
        find: "  if ttl == 0 then\n    text",
        replace:
          '  if op == "restore" then\n    text = ARGV[6]\n    redis.call("SET", KEYS[i], text, "PX", ttl)\n  elseif ttl == 0 then\n    text',
      },
    ],
    noticedBy: [...twoHolders, "holds survive"],
  },
];
