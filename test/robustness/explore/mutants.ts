import { type Mutant, patch } from "../sim/mutant.ts";
import { mutants as simulated } from "../sim/mutants.ts";

/** Further defects, most of them of `once` and `debounce`: each world of these has one that it shows first. */
export const worldMutants: readonly Mutant[] = [
  {
    name: "late execution undoes a permit's extension",
    breaks: "a second execution of an acquire shortens the validity",
    patches: [
      patch(
        "sync/internal/slot.lua",
        'redis.call("SET", KEYS[own], value, "PX", math.max(ttl, remaining))',
        'redis.call("SET", KEYS[own], value, "PX", ttl)',
      ),
    ],
    noticedBy: ["what is held stands", "one holder per slot", "permits within the limit", "linearizable"],
  },
  {
    name: "a repeated confirmation prolongs an interval",
    breaks: "a request that is executed again keeps all replicas out for longer than the interval",
    patches: [
      patch(
        "sync/internal/interval.lua",
        "if number > tonumber(run or 0) then",
        "if number >= tonumber(run or 0) then",
      ),
    ],
    noticedBy: ["refusals are true"],
  },
  {
    name: "an interval without a run",
    breaks: "a claim that could not become a run is released, and its interval keeps all replicas out",
    patches: [
      patch(
        "sync/internal/interval.lua",
        'redis.call("SET", KEYS[2], before .. ":" .. before, "KEEPTTL")',
        "",
      ),
    ],
    noticedBy: ["refusals are true"],
  },
  {
    name: "a second confirmation finds nothing",
    breaks:
      "where the reply to the first one is lost, the run counts as lost, and nobody runs in its interval",
    patches: [patch("sync/internal/interval.lua", "string.sub(holder, -#value) == value", "holder == value")],
    noticedBy: ["refusals are true"],
  },
  {
    name: "fences of runs follow the clock",
    breaks: "a replica whose clock is behind draws a smaller fence than the run before",
    patches: [
      patch(
        "sync/internal/interval.ts intervalStrategy",
        "fence = Math.max(Math.floor(runtime.now()), ...drawn.map((last) => last + 1));",
        "fence = Math.floor(runtime.now());",
      ),
    ],
    noticedBy: ["fences increase"],
  },
  {
    name: "a run is not informed of its end",
    breaks: "its routine goes on while the next run begins",
    patches: [patch("sync/once.ts once", "return outcome.signal;", "return new AbortController().signal;")],
    noticedBy: ["validity is honest"],
  },
  {
    name: "only the first endpoint's sequence counts",
    breaks: "where that endpoint did not answer, a call never becomes later than those before it",
    patches: [
      patch(
        "sync/internal/newest.ts latestSequence",
        "Math.max(...answers.map(sequenceOf))",
        "sequenceOf(answers[0])",
      ),
    ],
    noticedBy: ["requests are bounded", "calls end"],
  },
  {
    name: "a short announcement cuts a long one",
    breaks: "a call with a shorter ttl makes the endpoint forget too early which call was the last",
    patches: [patch("sync/debounce.lua", 'math.max(ttl, redis.call("PTTL", KEYS[1]))', "ARGV[2]")],
    noticedBy: ["validity is honest"],
  },
  {
    name: "a call that gives up stays the last",
    breaks: "the call before it does not run, and no other does",
    patches: [
      patch(
        "sync/internal/newest.ts withdraw",
        "(call) => release(call, { keys: [key], value })).done",
        '() => Promise.resolve({ outcome: "lost", key, value, release })).done',
      ),
    ],
    noticedBy: ["nothing is abandoned"],
  },
  {
    name: "a frozen call takes itself for the last",
    breaks: "later calls have come, run and expired, and it runs all the same",
    patches: [
      patch(
        "sync/debounce.ts isLastAfterWindow",
        `    if (validity.loss) throw validity.loss;
`,
        "",
      ),
    ],
    noticedBy: ["a later call replaces it"],
  },
  {
    name: "a late begin keeps its locks",
    breaks:
      "a begin that is executed after the end of its run holds the locks for nobody until the lease ends",
    patches: [patch("idempotency/execution.ts #store", 'if (roundResult !== "unavailable") freeLate();', "")],
    noticedBy: ["nothing is abandoned"],
  },
  {
    name: "forget deletes what has begun since",
    breaks: "a late removal deletes the record of the next run, which is under way",
    patches: [
      patch(
        "idempotency/forget.ts remove",
        "release(call, { keys: [name], value: text });",
        "release(call, { keys: [name], value: text, compareFrom: 2_048 });",
      ),
      patch("redis/cell.lua", "then return {0, tags} end", "then end"),
    ],
    noticedBy: ["a run is not forgotten"],
  },
];

/** Every defect that a world may show. */
export const mutants: readonly Mutant[] = [...simulated, ...worldMutants];
