import { type Mutant, twoHolders } from "./mutant.ts";

/** Defects of streams and messages: of how waiters are woken up. */
export const wakeUpMutants: readonly Mutant[] = [
  {
    name: "no second look after subscribing",
    breaks: "a release between the refusal and the subscription tells nobody, and the waiter sleeps on",
    patches: [
      {
        file: "lock/wake-up/channel-stream.ts",
        find: "        listener.onSubscribed(listener.waiter.firstTurn?.() ?? position);\n",
        replace: "        void [listener, position];\n",
      },
    ],
    noticedBy: ["waiters ask"],
  },
  {
    name: "no poll beside a stream",
    breaks: "a message that is lost, or an expiry, leaves the waiter asleep",
    patches: [
      {
        file: "lock/wake-up/channel-listener.ts",
        find: "isTold ? Math.max(began, this.#toldAt) + slowPoll : began + poll",
        replace: "isTold ? Infinity : began + poll",
      },
    ],
    noticedBy: ["waiters ask", "waiters are served"],
  },
  {
    name: "messages for others are believed for ever",
    breaks: "anybody who publishes large numbers keeps all waiters asleep",
    patches: [
      {
        file: "lock/wake-up/channel-listener.ts",
        find: "Math.min(longest, longestPause)",
        replace: "longest",
      },
    ],
    noticedBy: ["waiters ask"],
  },
  {
    name: "a waiting writer sleeps as long as a reader",
    breaks: "its announcement expires, and readers that follow one another starve it",
    patches: [
      {
        file: "sync/internal/writers.ts",
        find: '{ kind: readWrite, name: "w", longestPause: maxFallbackPoll }',
        replace: '{ kind: readWrite, name: "w" }',
      },
    ],
    noticedBy: ["waiters ask"],
    theme: "wake-ups",
  },
  {
    name: "a pause between messages outlasts the waiting",
    breaks: "the pause between two rounds ends after the caller's wait",
    patches: [
      {
        file: "lock/wake-up/channel-listener.ts",
        find: "const latest = began + Math.min(longest, longestPause);",
        replace: "const latest = began + longestPause;",
      },
    ],
    noticedBy: ["calls end"],
  },
  {
    name: "an abort waits for the next message",
    breaks: "a caller that gives up waits on",
    patches: [
      {
        file: "lock/wake-up/channel-listener.ts",
        find: '      signal?.addEventListener("abort", end);\n',
        replace: "",
      },
    ],
    noticedBy: ["calls end"],
  },
  {
    name: "any message puts off the next poll",
    breaks: "messages that the library has not published count as if others asked",
    patches: [
      {
        file: "lock/wake-up/events.ts",
        find: "if (!match) return undefined;",
        replace:
          'if (!match) return line.startsWith("data: message") ? { kind: "released", waiters: NaN, name: undefined } : undefined;',
      },
      {
        file: "lock/wake-up/events.ts",
        find: "return waiters > 0 || name ?",
        replace: "return true ?",
      },
    ],
    noticedBy: ["waiters ask"],
  },
  {
    name: "a message is taken for a grant",
    breaks: "who has waited for a message takes the lock, whatever the endpoints answer",
    patches: [
      {
        file: "lock/acquire.ts",
        find: 'if (result !== "granted") return { result, round, last: round };',
        replace:
          'if (result === "refused" && this.#listener) result = "granted";\n' +
          '    if (result !== "granted") return { result, round, last: round };',
      },
    ],
    noticedBy: [...twoHolders, "a quorum decides"],
    theme: "wake-ups",
  },
  {
    name: "a stream stays open after a grant",
    breaks: "each wait leaves a connection and a subscription behind",
    patches: [
      {
        file: "lock/acquire.ts",
        find: "      return outcome;\n    } catch (error) {",
        replace:
          "      if (outcome instanceof Lock) this.#listener = undefined;\n      return outcome;\n    } catch (error) {",
      },
    ],
    noticedBy: ["streams end"],
    theme: "wake-ups",
  },
  {
    name: "a stream stays open after giving up",
    breaks: "the same, where the time is up",
    patches: [
      {
        file: "lock/acquire.ts",
        find: "      return outcome;\n    } catch (error) {",
        replace:
          "      if (!(outcome instanceof Lock)) this.#listener = undefined;\n      return outcome;\n    } catch (error) {",
      },
    ],
    noticedBy: ["streams end"],
    theme: "wake-ups",
  },
  {
    name: "a stream stays open after an abort",
    breaks: "the same, where the caller has given up",
    patches: [
      {
        file: "lock/acquire.ts",
        find: "      throw error;\n    } finally {\n      this.#listener?.close();",
        replace:
          "      this.#listener = undefined;\n      throw error;\n    } finally {\n      this.#listener?.close();",
      },
    ],
    noticedBy: ["streams end"],
    theme: "wake-ups",
  },
  {
    name: "the last waiter leaves its stream open",
    breaks: "calls that share a stream never end it",
    patches: [
      {
        file: "lock/wake-up/channel-stream.ts",
        find: "    if (this.#listeners.size === 0) this.#end();\n",
        replace: "",
      },
    ],
    noticedBy: ["streams end"],
  },
  {
    name: "a subscription is awaited without a limit",
    breaks: "an endpoint that never answers keeps its waiter from the next one",
    patches: [
      {
        file: "lock/wake-up/channel-stream.ts",
        find: "runtime.timer(timeout, () => this.#end())",
        replace: "runtime.timer(timeout, () => undefined)",
      },
    ],
    noticedBy: ["streams end"],
  },
  {
    name: "a stream that has ended counts as one",
    breaks: "the waiter neither opens another one nor polls as without a stream",
    patches: [
      {
        file: "lock/wake-up/channel-listener.ts",
        find: "        this.#streams.delete(channel);\n",
        replace: "",
      },
    ],
    noticedBy: ["waiters ask"],
  },
  {
    name: "the end of a stream is an unhandled rejection",
    breaks: "a connection that is reset ends the process",
    patches: [
      {
        file: "lock/wake-up/channel-stream.ts",
        find: "      .catch(() => undefined)\n      .then(() => this.#end());",
        replace: "      .finally(() => this.#end());",
      },
    ],
    noticedBy: ["calls end"],
  },
  {
    name: "an old message wakes its waiter again and again",
    breaks: "the turn that a message has given is never over: a waiter asks without a pause",
    patches: [
      {
        file: "lock/wake-up/channel-listener.ts",
        find: "    if (this.#askAt <= this.#elapsed()) this.#askAt = Infinity;\n",
        replace: "",
      },
    ],
    noticedBy: ["requests are bounded", "calls end"],
  },
];
