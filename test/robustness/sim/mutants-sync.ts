import type { Mutant } from "./mutant.ts";

/** In the synchronizers. Only worlds of synchronizers can notice them. */
export const syncMutants: readonly Mutant[] = [
  {
    name: "permits are counted, not slots",
    breaks:
      "each endpoint gives out any of its slots, so a quorum may be of different ones (redis-semaphore)",
    patches: [
      { file: "sync/internal/slots.ts", find: "      if (count > 1) return [proposed];\n", replace: "" },
    ],
    noticedBy: ["permits within the limit", "one holder per slot", "linearizable"],
  },
  {
    name: "another limit is not looked at",
    breaks: "somebody who has another limit configured gets a permit beside the others",
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
    name: "late execution undoes a permit's extension",
    breaks: "a take that is executed a second time brings the end forward",
    patches: [
      {
        file: "sync/internal/slots.ts",
        find: 'redis.call("SET", KEYS[own], value, "PX", math.max(ttl, remaining))',
        replace: 'redis.call("SET", KEYS[own], value, "PX", ttl)',
      },
    ],
    noticedBy: ["validity is honest", "one holder per slot", "permits within the limit", "linearizable"],
  },
  {
    name: "one endpoint's limit is everybody's",
    breaks: "a wrong limit that only a minority has heard of is reported as the one in use",
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
    breaks: "somebody reads what is being written",
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
    name: "members are there until the first of them ends",
    breaks: "the deadline that is over first is taken for that of all",
    patches: [{ file: "sync/internal/members.ts", find: "key, -1, -1,", replace: "key, 0, 0," }],
    noticedBy: ["a writer is alone", "one owner at a time", "holds survive"],
  },
  {
    name: "all members end with the one who came last",
    breaks: "a short hold cuts the time for which the longer ones are remembered",
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
    breaks: "a take that is executed a second time brings the end forward",
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
    name: "the first who leaves frees it for all",
    breaks: "holds are counted, or are one key: a rollback of one hold takes the others along",
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
    breaks: "a take that is executed after its rollback holds it for nobody",
    patches: [
      {
        file: "sync/internal/members.ts",
        find: 'if redis.call("EXISTS", unpack(KEYS, 2, 1 + ARGV[5])) > 0 then\n',
        replace: "if false then\n",
      },
    ],
    noticedBy: ["withdrawn stays withdrawn"],
  },
  {
    name: "nobody hears of a writer that waits",
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
    breaks: "a writer that died waiting keeps readers out for its whole ttl, though nobody holds it",
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
    name: "a repeated drop forgets the first one",
    breaks: "a release that is executed twice on its way frees a hold, and says that it was gone",
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
    name: "whoever comes first is served",
    breaks: "the queue is kept, but nobody looks at it",
    patches: [{ file: "sync/internal/queue.ts", find: 'not holder and queue == ""', replace: "not holder" }],
    noticedBy: ["served in order"],
  },
  {
    name: "a dead ticket is not passed",
    breaks: "whoever died in the queue is waited for as long as somebody waits",
    patches: [
      { file: "sync/internal/queue.ts", find: "elseif tonumber(expiries) > now then", replace: "else" },
    ],
    noticedBy: ["waiters are served"],
  },
  {
    name: "the queue's lock is given out twice",
    breaks: "the head of the queue takes the lock while another holds it",
    patches: [
      {
        file: "sync/internal/queue.ts",
        find: "local acquires = ttl > 0 and not holder and ahead == 0",
        replace: "local acquires = ttl > 0 and ahead == 0",
      },
    ],
    noticedBy: ["mutual exclusion", "linearizable", "holds survive"],
  },
  {
    name: "an arrival counts as often as it comes",
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
    name: "a latch is open when somebody knows all",
    breaks:
      "what a minority has heard of is told before a quorum knows, and the next one who asks finds it closed",
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
    breaks: "whoever is told that it has arrived may be missing for the next one who asks",
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
    name: "a party passes alone",
    breaks: "all but one have arrived, and they go on",
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
    breaks: "whoever sees all passes before a quorum knows; the next one who asks is a generation behind",
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
    breaks: "a request that comes late undoes what came after it",
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
    name: "nobody asks again",
    breaks: "each call of a burst waits for its window and runs, whoever came after it",
    patches: [
      {
        file: "sync/debounce.ts",
        find: "    const { isLast } = await announce(context, own, () => validity.remaining());\n    if (!isLast) return false;\n",
        replace: "",
      },
    ],
    noticedBy: ["a later call takes its place", "a quorum decides"],
  },
  {
    name: "clocks decide who is the last",
    breaks:
      "a call keeps its clock's place, and the one whose clock is ahead runs in place of whoever came after it",
    patches: [{ file: "sync/debounce.ts", find: "while (!announced.isLast) {", replace: "while (false) {" }],
    noticedBy: ["waiters are served"],
  },
  {
    name: "a call takes whatever place it finds",
    breaks: "an endpoint forgets a later call for an earlier one that asks again, and both run",
    patches: [
      { file: "sync/debounce.ts", find: "if found and found > ARGV[1] then", replace: "if false then" },
    ],
    noticedBy: ["a later call takes its place"],
  },
];
