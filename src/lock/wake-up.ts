import type { Command } from "../endpoints/endpoint.ts";
import type { Call, Round, RoundContext } from "../quorum/round.ts";
import type { CellAnswer } from "../redis/cell.ts";

/**
 * `pubSub` of `redlock-edge/wake-up`. Messages may be lost, late, doubled or forged, so rounds decide every acquire.
 */
export interface WakeUp {
  /**
   * The commands that wake up waiters, for the request of a release.
   *
   * @param kind `lock`, or the kind of a synchronizer
   */
  announce(prefix: string, kind: string, resources: readonly string[]): readonly Command[];
  /** Waits for one call. The first `wait` subscribes. */
  listen(settings: ListenerSettings, waiter: Waiter, resources: readonly string[]): WakeUpListener;
}

export interface ListenerSettings extends RoundContext {
  readonly prefix: string;
}

export interface Waiter {
  readonly kind: string;
  /** Waiters of one name can be served together. Default: they ask one after another. */
  readonly name?: string;
}

/** The waiting of one call. */
export interface WakeUpListener {
  /** Resolves when it is time to ask again, or `signal` aborts. The caller checks the reason. */
  wait(pause: WakeUpPause): Promise<void>;
  /** Tells other waiters, in the request of a round. */
  asking(call: Call): void;
  /** Ends the subscription. */
  close(): void;
}

/** A pause between two rounds. */
export interface WakeUpPause {
  readonly round: Pick<Round<Pick<CellAnswer, "outcome" | "blockedBy">>, "calls" | "elapsed" | "done">;
  /** ms to pause without messages. */
  readonly poll: number;
  /** ms to pause at most. */
  readonly longest: number;
  readonly signal: AbortSignal | undefined;
}
