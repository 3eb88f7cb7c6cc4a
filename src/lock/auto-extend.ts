import { QuorumError } from "../errors.ts";
import { type Backoff, pauses } from "../quorum/backoff.ts";
import type { Runtime } from "../runtime.ts";
import { sharedTimer } from "../shared-timer.ts";
import type { Validity } from "./validity.ts";

/** What auto-extension depends on. */
export interface AutoExtension {
  readonly runtime: Runtime;
  /** ms to request each time; changes when the holder extends by hand. */
  readonly ttl: () => number;
  /** Longest time to hold, in ms. */
  readonly maxHold: number;
  readonly backoff: Backoff;
  /** Extends once. Rejects with `NO_QUORUM` where it may be tried again. */
  readonly extend: (ttl: number) => Promise<unknown>;
}

/**
 * Extends at about half of the ttl, together with others, again and again, until it is released, lost or held for as long as
 * `maxHold` and its limit allow. A failed try is repeated after a pause while validity remains; a loss ends it at once.
 */
export async function autoExtend(validity: Validity, options: AutoExtension): Promise<void> {
  const { runtime, maxHold, backoff, extend } = options;
  void validity.signal; // from now on the end is noticed even if nobody asks
  let nextPause = pauses(backoff, runtime);
  let pause = 0;
  let isLastTry = false;
  const reset = () => {
    pause = 0;
    isLastTry = false;
  };
  for (;;) {
    const due = Math.max(validity.remaining() - validity.budgetOf(options.ttl()) / 2, 1);
    const changed = await restUntilChange(validity, runtime, pause || due);
    if (validity.released || validity.loss) return;
    if (changed) {
      reset();
      continue;
    }
    // The last extension is cut, so that nothing is held longer than allowed.
    const whole = options.ttl();
    const ttl = Math.floor(Math.min(whole, validity.remainingHold(maxHold)));
    const isLast = ttl < whole;
    if (validity.budgetOf(ttl) <= validity.remaining()) {
      if (isLast) return validity.endBy(maxHold);
      continue; // it has just been extended by hand
    }
    try {
      await extend(ttl);
      if (isLast) return validity.endBy(maxHold);
      reset();
      nextPause = pauses(backoff, runtime);
    } catch (error) {
      if (!(error instanceof QuorumError)) return;
      try {
        pause = nextPause();
      } catch {
        return; // the user's backoff failed; nobody waits for this promise, and the alarm reports the end
      }
      const left = validity.remaining();
      // Where the pause would outlast the validity, one more try comes half way to its end, and then none.
      if (pause >= left) {
        pause = isLastTry ? left + 1 : left / 2;
        isLastTry = true;
      }
    }
  }
}

/** Pauses for `ms`, or until the validity changes. Returns whether it changed. */
function restUntilChange(validity: Validity, runtime: Runtime, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = sharedTimer(runtime, ms, () => resolve(false));
    validity.onChange = () => {
      cancel();
      resolve(true);
    };
  });
}
