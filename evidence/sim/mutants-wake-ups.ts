import { type Mutant, patch, twoHolders } from "./mutant.ts";

/** Defects of streams and messages: of how waiters are woken up. */
export const wakeUpMutants: readonly Mutant[] = [
  {
    name: "no second look after subscribing",
    breaks: "a release between the refusal and the subscription tells nobody, and the waiter sleeps on",
    patches: [
      patch(
        "lock/wake-up/channel-stream.ts #note",
        "listener.onSubscribed(listener.waiter.firstTurn?.() ?? position);",
        "",
      ),
    ],
    noticedBy: ["waiters ask"],
  },
  {
    name: "no poll beside a stream",
    breaks: "a message that is lost, or an expiry, leaves the waiter asleep",
    patches: [
      patch("lock/wake-up/channel-listener.ts wait", "Math.max(began, this.#toldAt) + slowPoll", "Infinity"),
    ],
    noticedBy: ["waiters ask", "waiters are served"],
  },
  {
    name: "a message is taken for a grant",
    breaks: "who has waited for a message takes the lock, whatever the endpoints answer",
    patches: [
      patch(
        "lock/acquire.ts #attempt",
        'if (result !== "granted") return { request, result, round, last: round',
        'if (result === "refused" && this.#listener) result = "granted";\nif (result !== "granted") return { request, result, round, last: round',
      ),
    ],
    noticedBy: [...twoHolders, "a quorum decides"],
    theme: "wake-ups",
  },
  {
    name: "a stream stays open after a grant",
    breaks: "each wait leaves a connection and a subscription behind",
    patches: [
      patch(
        "lock/acquire.ts run",
        "return outcome;",
        "if (outcome instanceof Lock) this.#listener = undefined;\nreturn outcome;",
      ),
    ],
    noticedBy: ["streams end"],
    theme: "wake-ups",
  },
  {
    name: "a stream that has ended counts as one",
    breaks: "the waiter neither opens another one nor polls as without a stream",
    patches: [patch("lock/wake-up/channel-listener.ts #join", "this.#streams.delete(channel);", "")],
    noticedBy: ["waiters ask"],
  },
  {
    name: "an old message wakes its waiter again and again",
    breaks: "the turn that a message has given is never over: a waiter asks without a pause",
    patches: [
      patch(
        "lock/wake-up/channel-listener.ts wait",
        "if (this.#askAt <= this.#elapsed()) this.#askAt = Infinity;",
        "",
      ),
    ],
    noticedBy: ["requests are bounded", "calls end"],
  },
];
