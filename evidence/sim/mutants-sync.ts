import { type Mutant, patch } from "./mutant.ts";

/** Defects of the synchronizers. Only simulations of synchronizers can notice them. */
export const syncMutants: readonly Mutant[] = [
  {
    name: "permits are counted, not slots",
    breaks:
      "each endpoint grants any of its slots, so a quorum may consist of different ones (redis-semaphore)",
    patches: [patch("sync/internal/slots.ts slotStrategy", "if (count > 1) return [proposed];", "")],
    noticedBy: ["permits within the limit", "one holder per slot", "linearizable"],
  },
  {
    name: "a run begins before its interval",
    breaks: "the claim ends after its ttl, and the next replica runs in the same interval",
    patches: [patch("sync/once.ts once", "await confirm(settings, outcome, strategy, every);", "")],
    noticedBy: ["a quorum decides", "one run per interval"],
  },
  {
    name: "a claim counts as an interval",
    breaks: "replicas leave because of a claim that then fails, and none runs",
    patches: [
      patch(
        "sync/internal/interval.ts intervalStrategy",
        "&& runs > answers.length - quorumOf(answers.length)",
        "",
      ),
    ],
    noticedBy: ["refusals are true"],
  },
  {
    name: "a call runs the next interval",
    breaks: "a replica that waited for a claim runs when the interval that the claim became is over",
    patches: [patch("sync/internal/interval.lua", "ends + number > now", "tonumber(ends) > now")],
    noticedBy: ["one run per tick"],
  },
  {
    name: "members expire with the last arrival",
    breaks: "a short hold shortens the time for which longer ones are remembered",
    patches: [patch("sync/internal/member.lua", "now + math.max(ms, remaining)", "now + ms")],
    noticedBy: ["a writer is alone", "one owner at a time", "holds survive", "validity is honest"],
  },
  {
    name: "waiting writers are not announced",
    breaks: "readers that follow one another starve the writer",
    patches: [patch("sync/internal/member.lua", "retryAfter = math.max(retryAfter, (last(waiting)))", "")],
    noticedBy: ["waiters are served"],
  },
  {
    name: "an announcement stands for the ttl",
    breaks: "a writer that died waiting keeps readers out for its whole ttl, though nobody holds the lock",
    patches: [patch("sync/internal/member.lua", "tonumber(ARGV[8])", "math.max(ttl, 3000)")],
    noticedBy: ["the dead do not keep others out"],
  },
  {
    name: "the queue is ignored",
    breaks: "waiters queue, but any of them may acquire",
    patches: [patch("sync/internal/queue.lua", ' and queue == ""', "")],
    noticedBy: ["served in order"],
  },
  {
    name: "dead tickets are not skipped",
    breaks: "a waiter that died in the queue blocks it as long as others wait",
    patches: [patch("sync/internal/queue.lua", "tonumber(expiries) > now", "true")],
    noticedBy: ["waiters are served"],
  },
  {
    name: "the dead in a queue are not skipped together",
    breaks: "those who do not answer a call keep their places until their tickets expire",
    patches: [patch("sync/internal/queue.lua", "entry[2] = math.min(entry[2], now + grace)", "")],
    noticedBy: ["a free lock is taken"],
    theme: "wake-ups",
  },
  {
    name: "repeated arrivals count again",
    breaks: "arrivals are counted, so a repeated one opens the latch too early",
    patches: [
      patch(
        "sync/internal/arrivals.ts queryEndpoint",
        "const nonce = randomToken(settings.runtime);",
        "const nonce = randomToken(settings.runtime);\nif (id !== undefined) id += nonce;",
      ),
    ],
    noticedBy: ["a latch opens with the last", "a barrier waits for all"],
  },
  {
    name: "a minority opens a latch",
    breaks: "it is returned as open because of a minority's arrivals, and the next call finds it closed",
    patches: [
      patch(
        "sync/count-down-latch.ts #poll",
        "return { to: epoch + open };",
        "return { value: { open: true, arrived: count, remaining: 0 } };",
      ),
    ],
    noticedBy: ["an open latch stays open", "arrivals count"],
  },
  {
    name: "a generation passes on a minority",
    breaks:
      "a party that sees all arrivals passes before a quorum has them; the next caller is a generation behind",
    patches: [
      patch(
        "sync/cyclic-barrier.ts arriveAndWait",
        'if (result !== "granted" || query.to !== to)',
        'if (passed) return { value: levelOf(passed) };\nif (result !== "granted" || query.to !== to)',
      ),
    ],
    noticedBy: ["a barrier waits for all", "generations follow"],
  },
  {
    name: "endpoints go back to an earlier generation",
    breaks: "a late request undoes what came after it",
    patches: [
      patch("sync/internal/arrival.lua", "if to > at then", "if to ~= at then"),
      patch("sync/internal/arrival.lua", "and to >= at", ""),
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
      patch(
        "sync/debounce.ts isLastAfterWindow",
        "await announce(context, own, () => validity.remaining())",
        "{ isLast: true }",
      ),
    ],
    noticedBy: ["a later call replaces it", "a quorum decides"],
  },
  {
    name: "clocks decide which call is last",
    breaks:
      "a call keeps the sequence of its clock, so the one whose clock is ahead runs instead of later ones",
    theme: "debounce",
    patches: [patch("sync/internal/newest.ts announceNewest", "!announced.isLast", "false")],
    noticedBy: ["waiters are served"],
  },
  {
    name: "a replaced call runs its job",
    breaks: "a call that waited runs after a newer one, with older arguments",
    patches: [patch("sync/singleton.ts #isReplacedUnder", "await this.#look(remainingWait);", "")],
    noticedBy: ["a later call replaces it", "a quorum decides"],
  },
  {
    name: "a job does not wait for the one before it",
    breaks: "the lock's name is that of the call: jobs run side by side",
    patches: [
      patch(
        "sync/singleton.ts #acquire",
        "acquireLooking(settings, this.#name, this.#limits",
        "acquireLooking(settings, this.#own.text, this.#limits",
      ),
    ],
    noticedBy: ["mutual exclusion"],
  },
  {
    name: "a cancelled job counts as one that never began",
    breaks: "the caller cannot know that a part of the job is done",
    patches: [patch("sync/singleton.ts replace", "      began = true;\n", "")],
    noticedBy: ["the routine's outcome wins", "calls end"],
  },
  {
    name: "what was read before the lock is refreshed",
    breaks: "a waiter exchanges the token that the call before it has exchanged",
    patches: [
      patch(
        "sync/refresh-once.ts #read",
        "return this.#found(await this.#options.read());",
        "return ((this as any).first ??= this.#found(await this.#options.read()));",
      ),
    ],
    noticedBy: ["a token is used once"],
  },
  {
    name: "kept tokens are not looked for",
    breaks: "the next call exchanges the token once more whose successor the store has not taken",
    patches: [
      patch(
        "sync/refresh-once.ts #current",
        "!stored.isFresh && open && (await readKept(this.#settings, this.#key))",
        "undefined as any",
      ),
    ],
    noticedBy: ["a token is used once"],
  },
];
