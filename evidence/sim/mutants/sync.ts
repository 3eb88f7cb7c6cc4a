import { type Mutant, patch, twoHolders } from "./mutant.ts";

/** Defects of the synchronizers, and of how waiters are woken up. */
export const syncMutants: readonly Mutant[] = [
  {
    name: "permits are counted, not slots",
    breaks:
      "each endpoint grants any of its slots, so a quorum may consist of different ones (redis-semaphore)",
    patches: patch("sync/semaphore.ts permits", "endpoints.length === 1", "true"),
    noticedBy: ["permits within the limit", "one holder per slot"],
  },
  {
    name: "a call runs the next interval",
    breaks: "a replica that waited for a claim runs when the interval that the claim became is over",
    patches: patch("twins/interval-twin.ts run", "ends + whole(more!) > now", "ends > now"),
    noticedBy: ["one run per tick"],
  },
  {
    name: "members expire with the last arrival",
    breaks: "a short hold shortens the time for which longer ones are remembered",
    patches: patch("twins/member-twin.ts put", "now + Math.max(ms, remaining)", "now + ms"),
    noticedBy: ["a writer is alone", "one owner at a time", "holds survive", "validity is honest"],
  },
  {
    name: "an announcement stands for the ttl",
    breaks: "a writer that died waiting keeps readers out for its whole ttl, though nobody holds the lock",
    patches: patch("twins/member-twin.ts run", "whole(expiry!)", "Math.max(ttl, 3_000)"),
    noticedBy: ["the dead do not keep others out"],
  },
  {
    name: "the queue is ignored",
    breaks: "waiters queue, but any of them may acquire",
    patches: patch("twins/queue-twin.ts run", 'isFree && queue === ""', "isFree"),
    noticedBy: ["served in order"],
  },
  {
    name: "a pause outlives the ticket",
    breaks:
      "after a round without an answer a waiter pauses for longer than its ticket lives, and is overtaken",
    patches: patch(
      "sync/internal/queue-pacer.ts measuringPacer",
      "Math.min(longest, ahead === undefined ? nextBlindPause() : wishedPause(ahead))",
      "ahead === undefined ? nextBlindPause(1_000) : Math.min(longest, wishedPause(ahead))",
    ),
    noticedBy: ["served in order"],
  },
  {
    name: "repeated arrivals count again",
    breaks: "arrivals are counted, so a repeated one opens the latch too early",
    patches: patch(
      "sync/internal/arrivals.ts queryEndpoint",
      "const nonce = randomToken(runtime);",
      "const nonce = randomToken(runtime);\nif (id !== undefined) id += nonce;",
    ),
    noticedBy: ["a latch opens with the last", "a barrier waits for all"],
  },
  {
    name: "no second round",
    breaks: "each call of a burst waits for its window and runs, also when later calls came",
    patches: patch("sync/debounce.ts isNewestAfter", "await call.isNewest(call.remaining(), signal)", "true"),
    noticedBy: ["a later call replaces it", "a quorum decides"],
  },
  {
    name: "a job does not wait for the one before it",
    breaks: "the lock's name is that of the call: jobs run side by side",
    patches: patch(
      "sync/singleton.ts acquireAsNewest",
      "wait: remainingWait() }, name, options",
      "wait: remainingWait() }, newest.id, options",
    ),
    noticedBy: ["mutual exclusion"],
  },
  {
    name: "what was read before the lock is refreshed",
    breaks: "a waiter exchanges the token that the call before it has exchanged",
    patches: patch(
      "sync/refresh-once.ts #read",
      "const value = await this.#options.read();",
      "const value = await ((this as any).first ??= this.#options.read());",
    ),
    noticedBy: ["a token is used once"],
  },
  {
    name: "no second look after subscribing",
    breaks: "a release between the refusal and the subscription tells nobody, and the waiter sleeps on",
    patches: patch("wake-up/listener.ts wait", "this.#hearsSince < asked", "this.#hearsSince < Infinity"),
    noticedBy: ["waiters ask"],
  },
  {
    name: "a message is taken for a grant",
    breaks: "who has waited for a message takes the lock, whatever the endpoints answer",
    patches: [
      ...patch(
        "lock/acquire.ts #conclude",
        'if (result === "granted") {',
        'if (result === "granted" || (result === "refused" && this.#listener)) {',
      ),
      ...patch(
        "lock/acquire.ts #conclude",
        '(await claimed.last.result) === "granted"',
        '((await claimed.last.result) === "granted" || this.#listener)',
      ),
    ],
    noticedBy: [...twoHolders, "a quorum decides"],
    theme: "wake-ups",
  },
  {
    name: "a stream stays open after a grant",
    breaks: "each wait leaves a connection and a subscription behind",
    patches: patch("lock/acquire.ts run", "return lock;", "this.#listener = undefined;\nreturn lock;"),
    noticedBy: ["streams end"],
    theme: "wake-ups",
  },
  {
    name: "an old message wakes its waiter again and again",
    breaks: "the turn that a message has given is never over: a waiter asks without a pause",
    patches: patch("wake-up/listener.ts wait", "this.#askAt = Infinity;", ""),
    noticedBy: ["requests are bounded", "calls end"],
  },
];
