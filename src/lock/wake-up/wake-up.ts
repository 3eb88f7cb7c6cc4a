import type { Ask } from "../../endpoints/ask.ts";
import type { Round, RoundContext } from "../../quorum/round.ts";
import type { Answer } from "../../quorum/tally.ts";
import type { Cell, CellAnswer } from "../../redis/cell.ts";

// How waiters learn that a lock may be free. A message is a hint and never a proof: it may be lost, late, doubled or
// forged, so every acquire is decided by its rounds, and a waiter that gets no message asks by itself.

/** ms after which a waiter asks in any case: messages may be forged. */
export const maxSleep = 30_000;

/** The pause after which a waiter asks although no message came is at most so long, in ms. */
export const maxFallbackPoll = 4_000;

/** A way to wake up waiters: `pubSub`. */
export interface WakeUp {
  /**
   * Releases as `release` of the cell does, and tells those that wait.
   *
   * @param kind `lock`, or the kind of a synchronizer
   */
  publishingRelease(
    prefix: string,
    kind: string,
    resources: readonly string[],
  ): (call: Ask, cell: Cell, tombstoneTtl: number) => Promise<CellAnswer>;
  /** Waits for one call; the first `wait` subscribes. */
  listen(settings: ListenerSettings, waiter: Waiter, resources: readonly string[]): WakeUpListener;
}

/** What a listener needs of the settings of its call. */
export interface ListenerSettings extends RoundContext {
  readonly prefix: string;
}

/** One of those that wait for what a holder releases. */
export interface Waiter {
  /** `lock`, or the kind of a synchronizer. */
  readonly kind: string;
  /** What the messages that are for it name; it sleeps through the others. Default: those that name nobody. */
  readonly name?: string;
  /**
   * When it asks again once its stream stands, in slots: a release between its refusal and that moment has told nobody.
   * Infinity: not at all. Default: one of its stream's waiters after the other, so that one finds out for all.
   */
  firstTurn?(): number;
  /** ms after which it asks whatever messages come. Default 30 000. */
  readonly longestPause?: number;
}

/** The waiting of one call. */
export interface WakeUpListener {
  /** Resolves when it is time to ask again, or as soon as `signal` aborts; the caller checks which. */
  wait(pause: WakeUpPause): Promise<void>;
  /** Ends the subscriptions. */
  close(): void;
}

/** A pause between two rounds. */
export interface WakeUpPause {
  /** The last round. */
  readonly round: Pick<Round<Answer>, "calls" | "elapsed">;
  /** ms to pause where no stream can be had. */
  readonly poll: number;
  /** ms to pause at most. */
  readonly longest: number;
  readonly signal: AbortSignal | undefined;
}
