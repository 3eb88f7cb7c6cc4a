import { onAbort } from "../abort.ts";
import { EndpointError } from "../errors.ts";
import { type Command, type Endpoint, unsentError } from "./endpoint.ts";
import { Room } from "./room.ts";

// A client of another package executes all that it was given, however late, and the application's own commands wait behind
// that. So it is given no more than it answers in time.

/** The error of a command whose turn did not come before its caller gave up. */
const sentFirst = () => new Error("others were sent first");

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
  async run<Reply>(signal: AbortSignal, work: (onSent: () => void) => Promise<Reply>): Promise<Reply> {
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

  #wait(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      if (signal.aborted) return reject(sentFirst());
      const begin = () => {
        this.#waiting.delete(begin);
        ignoreAbort();
        resolve();
      };
      const ignoreAbort = onAbort(signal, () => {
        this.#waiting.delete(begin);
        reject(sentFirst());
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

/** How commands are given to a client. */
export interface ClientWay {
  readonly handOver: HandOver;
  /** Resolves when the client may be connected, and rejects with the reason if it is not. Undefined: it is connected. */
  whenReady?(signal: AbortSignal): Promise<void> | undefined;
  call(command: readonly string[], signal: AbortSignal): Promise<unknown>;
  /** What an error of the client means. The client's error must not be the cause, because it may quote the command. */
  errorOf(error: unknown, command: Command): EndpointError;
}

/** A function that sends commands through a client as soon as it is connected, and there is room for them. */
export function sendThrough(
  name: string,
  { handOver, whenReady, call, errorOf }: ClientWay,
): Endpoint["send"] {
  return async (command, signal, onSent) => {
    let isSent = false;
    try {
      return await handOver.run(signal, async (onHandedOver) => {
        for (let wait = whenReady?.(signal); wait; wait = whenReady?.(signal)) await wait;
        if (signal.aborted) throw sentFirst();
        isSent = true;
        onHandedOver();
        onSent?.(1);
        // Not given up at the timeout: what is executed late must be known, to be rolled back.
        return call(command.map(String), signal);
      });
    } catch (error) {
      if (isSent) throw errorOf(error, command);
      const { message } = error as Error;
      if (signal.aborted) throw unsentError(name, `not sent in time: ${message}`);
      throw new EndpointError(name, "network", message, { unsent: true });
    }
  };
}
