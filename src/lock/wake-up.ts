import type { Command } from "../endpoints/endpoint.ts";
import type { Call, Round, RoundContext } from "../quorum/round.ts";
import type { CellAnswer } from "../redis/cell.ts";

/**
 * How waiters learn that something is free: `pubSub` of `redlock-edge/wake-up`. A message is a hint: it may be lost, late,
 * doubled or forged. So rounds decide every acquire, and a waiter that gets no message asks by itself.
 */
export interface WakeUp {
  /**
   * The commands that tell those that wait. A release sends them in its own request, and ignores it if they fail.
   *
   * @param kind `lock`, or the kind of a synchronizer
   */
  announce(prefix: string, kind: string, resources: readonly string[]): readonly Command[];
  /** Waits for one call. The first `wait` subscribes. */
  listen(settings: ListenerSettings, waiter: Waiter, resources: readonly string[]): WakeUpListener;
}

/** The settings that a call's listener needs. */
export interface ListenerSettings extends RoundContext {
  readonly prefix: string;
}

/** One of those that wait for something. */
export interface Waiter {
  /** `lock`, or the kind of a synchronizer. */
  readonly kind: string;
  /**
   * The message that calls it, if it can be served together with all others of this name. Default: only one of those that
   * wait can have what becomes free, so they ask one after another.
   */
  readonly name?: string;
}

/** The waiting of one call. */
export interface WakeUpListener {
  /** Resolves when it is time to ask again, or as soon as `signal` aborts. The caller checks the reason. */
  wait(pause: WakeUpPause): Promise<void>;
  /** Tells others, in the request of a round, that this one asks. */
  asking(call: Call): void;
  /** Ends the subscription. */
  close(): void;
}

/** A pause between two rounds. */
export interface WakeUpPause {
  /** The last round. */
  readonly round: Pick<Round<Pick<CellAnswer, "outcome" | "blockedBy">>, "calls" | "elapsed" | "done">;
  /** ms to pause without messages. */
  readonly poll: number;
  /** ms to pause at most. */
  readonly longest: number;
  readonly signal: AbortSignal | undefined;
}
