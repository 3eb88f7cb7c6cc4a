import type { CallSignal } from "./call-signal.ts";
import { Room } from "./room.ts";

// A client of another package executes all that it was given, however late, and the application's own commands wait behind
// that. So it is given no more than it answers in time.

/** The error of a command that was not handed over because its caller has given up. */
export const givenUp = (): Error => new Error("given up before it was sent");

/** By client: all endpoints over a client share its queue. */
const known = new WeakMap<object, HandOver>();

/** What hands commands over to a client. */
export function handOverTo(client: object): HandOver {
  const handOver = known.get(client) ?? new HandOver();
  known.set(client, handOver);
  return handOver;
}

/** Hands commands over to one client, in the order of the calls. */
export class HandOver {
  readonly #room = new Room();
  readonly #waiting = new Set<() => void>();

  /**
   * Does the work when there is room for it.
   *
   * @param work calls `onSent` when it hands the command over
   * @throws Error when `signal` aborts before that: the work is never done
   */
  async run<Reply>(signal: CallSignal, work: (onSent: () => void) => Promise<Reply>): Promise<Reply> {
    if (!this.#room.take()) await this.#wait(signal);
    let isSent = false;
    try {
      return await work(() => {
        isSent = true;
      });
    } finally {
      // Its caller has given up: until now it was in the client's queue.
      this.#room.leave(isSent ? (signal.aborted ? "never" : "early") : undefined);
      this.#admit();
    }
  }

  #wait(signal: CallSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(givenUp());
      const begin = () => {
        this.#waiting.delete(begin);
        ignoreAbort();
        resolve();
      };
      const ignoreAbort = signal.onAbort(() => {
        this.#waiting.delete(begin);
        reject(givenUp());
      });
      this.#waiting.add(begin);
    });
  }

  #admit(): void {
    for (const begin of this.#waiting) {
      if (!this.#room.take()) return;
      begin();
    }
  }
}
