import type { Call } from "../../endpoints/call.ts";
import type { Round } from "../../quorum/round.ts";
import type { Register, RegisterAnswer } from "../../redis/register.ts";
import type { Settings } from "../options.ts";

// How waiters learn that a lock may be free. A message is a hint and never a proof: it may be lost, late, doubled or
// forged, so every acquire is decided by its rounds, and a waiter that gets no message asks by itself.

/** A way to wake up waiters: `pubSub`. */
export interface WakeUp {
  /**
   * Releases as `release` of the register does, and tells those that wait.
   *
   * @param kind `lock`, or the kind of a synchronizer
   */
  releaser(
    prefix: string,
    kind: string,
    resources: readonly string[],
  ): (call: Call, register: Register, retention: number) => Promise<RegisterAnswer>;
  /** Waits for one call; the first `wait` subscribes. */
  listen(settings: Settings, kind: string, resources: readonly string[]): Listener;
}

/** The waiting of one call. */
export interface Listener {
  /** Resolves when it is time to ask again, or as soon as `signal` aborts; the caller checks which. */
  wait(pause: Pause): Promise<void>;
  /** Ends the subscriptions. */
  close(): void;
}

/** A pause between two rounds. */
export interface Pause {
  /** The round that was refused. */
  readonly round: Round<RegisterAnswer>;
  /** ms to pause where no stream can be had. */
  readonly poll: number;
  /** ms to pause at most. */
  readonly longest: number;
  readonly signal: AbortSignal | undefined;
}
