import type { Mutant } from "./mutant.ts";

/** Defects of the synchronizers. Only simulations of synchronizers can notice them. */
export const syncMutants: readonly Mutant[] = [
  {
    name: "permits are counted, not slots",
    breaks:
      "each endpoint grants any of its slots, so a quorum may consist of different ones (redis-semaphore)",
    patches: [
      { file: "sync/internal/slots.ts", find: "      if (count > 1) return [proposed];\n", replace: "" },
    ],
    noticedBy: ["permits within the limit", "one holder per slot", "linearizable"],
  },
  {
    name: "another limit is ignored",
    breaks: "a client with another limit gets a permit beside the others",
    patches: [
      {
        file: "sync/internal/slots.ts",
        find: "if found[1] and found[1] ~= limit then",
        replace: "if false then",
      },
    ],
    noticedBy: ["permits within the limit"],
  },
  {
    name: "one endpoint's limit counts as the semaphore's",
    breaks: "a wrong limit that only a minority has seen is reported as the one in use",
    patches: [
      {
        file: "sync/internal/slots.ts",
        find: "others.length > count - quorumOf(count)",
        replace: "others.length > 0",
      },
    ],
    noticedBy: ["refusals are true", "waiters are served"],
  },
  {
    name: "a run begins before its interval",
    breaks: "the claim ends after its ttl, and the next replica runs in the same interval",
    patches: [
      { file: "sync/once.ts", find: "  await confirm(settings, outcome, strategy, every);\n", replace: "" },
    ],
    noticedBy: ["a quorum decides", "one run per interval"],
  },
  {
    name: "an interval ends with its run",
    breaks: "the claim is released, and a replica that comes a little later runs again",
    patches: [
      { file: "sync/once.ts", find: "    outcome.abandon();\n", replace: "    await outcome.release();\n" },
    ],
    noticedBy: ["one run per interval"],
  },
  {
    name: "a claim counts as an interval",
    breaks: "replicas leave because of a claim that then fails, and none runs",
    patches: [
      {
        file: "sync/internal/interval.ts",
        find: "const isOver = held && runs > answers.length - quorumOf(answers.length);",
        replace: "const isOver = held;",
      },
    ],
    noticedBy: ["refusals are true"],
  },
  {
    name: "a call runs the next interval",
    breaks: "a replica that waited for a claim runs when the interval that the claim became is over",
    patches: [
      {
        file: "sync/internal/interval.ts",
        find: "if run or ends + number > now then",
        replace: "if run or tonumber(ends) > now then",
      },
    ],
    noticedBy: ["one run per tick"],
  },
  {
    name: "readers ignore the writer",
    breaks: "a reader holds while a writer writes",
    patches: [
      {
        file: "sync/internal/members.ts",
        find: "if remaining > 0 and string.sub(other, from)",
        replace: 'if remaining > 0 and string.sub(member, from) ~= "r" and string.sub(other, from)',
      },
    ],
    noticedBy: ["a writer is alone"],
  },
  {
    name: "members expire with the first of them",
    breaks: "the earliest deadline counts as that of all",
    patches: [{ file: "sync/internal/members.ts", find: "key, -1, -1,", replace: "key, 0, 0," }],
    noticedBy: ["a writer is alone", "one owner at a time", "holds survive"],
  },
  {
    name: "members expire with the last arrival",
    breaks: "a short hold shortens the time for which longer ones are remembered",
    patches: [
      {
        file: "sync/internal/members.ts",
        find: 'string.format("%.0f", now + math.max(ms, remaining)))',
        replace: 'string.format("%.0f", now + ms))',
      },
    ],
    noticedBy: ["a writer is alone", "one owner at a time", "holds survive", "validity is honest"],
  },
  {
    name: "late execution undoes a member's extension",
    breaks: "a second execution of an acquire shortens the validity",
    patches: [
      {
        file: "sync/internal/members.ts",
        find: 'put(KEYS[1], "GT", member, ttl, remaining)',
        replace: 'put(KEYS[1], "CH", member, ttl, remaining)',
      },
    ],
    noticedBy: ["a writer is alone", "one owner at a time", "validity is honest"],
  },
  {
    name: "the first release frees all holds",
    breaks: "holds are counted, or are one key: a rollback of one hold removes the others",
    patches: [
      {
        file: "sync/internal/members.ts",
        find: 'redis.call("ZREM", KEYS[1], member)',
        replace: 'redis.call("DEL", KEYS[1])',
      },
    ],
    noticedBy: ["a writer is alone", "one owner at a time", "holds survive"],
  },
  {
    name: "members have no tombstone",
    breaks: "an acquire that is executed after its rollback leaves a hold without a holder",
    patches: [
      {
        file: "sync/internal/members.ts",
        find: 'if redis.call("EXISTS", unpack(KEYS, 2, 1 + ARGV[5])) > 0 then\n',
        replace: "if false then\n",
      },
    ],
    noticedBy: ["rolled back stays rolled back"],
  },
  {
    name: "waiting writers are not announced",
    breaks: "readers that follow one another starve the writer",
    patches: [
      {
        file: "sync/internal/members.ts",
        find: "retryAfter = math.max(retryAfter, (last(waiting)))",
        replace: "",
      },
    ],
    noticedBy: ["waiters are served"],
  },
  {
    name: "an announcement stands for the ttl",
    breaks: "a writer that died waiting keeps readers out for its whole ttl, though nobody holds the lock",
    patches: [
      {
        file: "sync/internal/members.ts",
        find: 'put(waiting, "GT", id, tonumber(ARGV[8]), (last(waiting)))',
        replace: 'put(waiting, "GT", id, math.max(ttl, 3000), (last(waiting)))',
      },
    ],
    noticedBy: ["the dead do not keep others out"],
  },
  {
    name: "a repeated release forgets the first one",
    breaks: "a release that is executed twice frees a hold, and returns that it was gone",
    patches: [
      {
        file: "sync/internal/members.ts",
        find: 'if not found and ARGV[5] ~= "0" then found = redis.call("GET", KEYS[2]) == "freed" end\n    ',
        replace: "",
      },
    ],
    noticedBy: ["a quorum decides"],
  },
  {
    name: "the queue is ignored",
    breaks: "waiters queue, but any of them may acquire",
    patches: [
      { file: "sync/internal/queue-requests.ts", find: 'not holder and queue == ""', replace: "not holder" },
    ],
    noticedBy: ["served in order"],
  },
  {
    name: "dead tickets are not skipped",
    breaks: "a waiter that died in the queue blocks it as long as others wait",
    patches: [
      {
        file: "sync/internal/queue-requests.ts",
        find: "elseif tonumber(expiries) > now then",
        replace: "else",
      },
    ],
    noticedBy: ["waiters are served"],
  },
  {
    name: "the queue's lock is granted twice",
    breaks: "the head of the queue acquires the lock while another holds it",
    patches: [
      {
        file: "sync/internal/queue-requests.ts",
        find: "local acquires = ttl > 0 and not holder and ahead == 0",
        replace: "local acquires = ttl > 0 and ahead == 0",
      },
    ],
    noticedBy: ["mutual exclusion", "linearizable", "holds survive"],
  },
  {
    name: "repeated arrivals count again",
    breaks: "arrivals are counted, so a repeated one opens the latch too early",
    patches: [
      {
        file: "sync/internal/arrivals.ts",
        find: "const nonce = randomToken(settings.runtime);",
        replace: "const nonce = randomToken(settings.runtime);\n  if (id !== undefined) id += nonce;",
      },
    ],
    noticedBy: ["a latch opens with the last", "a barrier waits for all"],
  },
  {
    name: "a minority opens a latch",
    breaks: "it is returned as open because of a minority's arrivals, and the next call finds it closed",
    patches: [
      {
        file: "sync/count-down-latch.ts",
        find: "if (isOpen || arrived.size >= count) return { to: epoch + open };",
        replace:
          "if (isOpen || arrived.size >= count) return { value: { open: true, arrived: count, remaining: 0 } };",
      },
    ],
    noticedBy: ["an open latch stays open", "arrivals count"],
  },
  {
    name: "an arrival at a minority counts",
    breaks: "the arrival is confirmed, but may be missing for the next caller",
    patches: [
      {
        file: "sync/count-down-latch.ts",
        find: '      if (result !== "granted") return query;\n',
        replace: "",
      },
    ],
    noticedBy: ["arrivals count"],
  },
  {
    name: "a party is not waited for",
    breaks: "all but one have arrived, and they pass",
    patches: [
      {
        file: "sync/cyclic-barrier.ts",
        find: "if (ids.size < arrivals.count)",
        replace: "if (ids.size < arrivals.count - 1)",
      },
    ],
    noticedBy: ["a barrier waits for all"],
  },
  {
    name: "a generation passes on a minority",
    breaks:
      "a party that sees all arrivals passes before a quorum has them; the next caller is a generation behind",
    patches: [
      {
        file: "sync/cyclic-barrier.ts",
        find: 'if (result !== "granted" || query.to !== to) return queryOf(state, id);\n      if (passed) return',
        replace:
          'if (passed) return { value: levelOf(passed) };\n      if (result !== "granted" || query.to !== to) return queryOf(state, id);\n      if (passed) return',
      },
    ],
    noticedBy: ["a barrier waits for all", "generations follow"],
  },
  {
    name: "endpoints go back to an earlier generation",
    breaks: "a late request undoes what came after it",
    patches: [
      { file: "sync/internal/arrivals.ts", find: "  if to > at then", replace: "  if to ~= at then" },
      {
        file: "sync/internal/arrivals.ts",
        find: 'if to ~= "" and to >= at then',
        replace: 'if to ~= "" then',
      },
    ],
    noticedBy: [
      "an open latch stays open",
      "a barrier waits for all",
      "generations follow",
      "waiters are served",
    ],
  },
  {
    name: "no second round",
    breaks: "each call of a burst waits for its window and runs, also when later calls came",
    patches: [
      {
        file: "sync/debounce.ts",
        find: "    const { isLast } = await announce(context, own, () => validity.remaining());\n    if (!isLast) return false;\n",
        replace: "",
      },
    ],
    noticedBy: ["a later call replaces it", "a quorum decides"],
  },
  {
    name: "clocks decide which call is last",
    breaks:
      "a call keeps the sequence of its clock, so the one whose clock is ahead runs instead of later ones",
    patches: [{ file: "sync/debounce.ts", find: "while (!announced.isLast) {", replace: "while (false) {" }],
    noticedBy: ["waiters are served"],
  },
  {
    name: "a call accepts any sequence",
    breaks: "an endpoint forgets a later call for an earlier one's second round, and both run",
    patches: [
      { file: "sync/debounce.ts", find: "if found and found > ARGV[1] then", replace: "if false then" },
    ],
    noticedBy: ["a later call replaces it"],
  },
];
