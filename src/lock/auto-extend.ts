import { QuorumError } from "../errors.ts";
import type { Runtime } from "../runtime.ts";
import type { Validity } from "./validity.ts";

/** What auto-extension depends on. */
export interface AutoExtension {
  readonly runtime: Runtime;
  /** ms to request each time; changes when the holder extends by hand. */
  ttl(): number;
  /** Longest time to hold, in ms. */
  readonly maxHold: number;
  /** Extends once. Rejects with `NO_QUORUM` where it may be tried again. */
  extend(ttl: number): Promise<unknown>;
}

/** Of a ttl: extensions that are due within so much of it come at the same moment, so that they share requests. */
const together = 1 / 64;

/** Of a validity: the shortest pause after an extension that failed. */
const shortestPause = 1 / 16;

/**
 * Extends at half of the ttl, or a little earlier together with others, again and again, until it is released, lost or held
 * for as long as `maxHold` and its limit allow. After a failure the next try comes at half of the validity that remains. A loss
 * ends it at once.
 */
export async function autoExtend(
  validity: Validity,
  { runtime, ttl, maxHold, extend }: AutoExtension,
): Promise<void> {
  void validity.signal; // from now on the end is noticed even if nobody asks
  let hasFailed = false;
  for (;;) {
    const whole = validity.budgetOf(ttl());
    const remaining = validity.remaining();
    const pause = hasFailed
      ? Math.max(remaining / 2, shortestPause * whole)
      : untilShared(runtime, remaining - whole / 2, together * ttl());
    const isDue = await rest(validity, runtime, Math.max(Math.floor(pause), 1));
    if (validity.released || validity.loss) return;
    if (!isDue) continue;
    // The last extension is cut, so that nothing is held longer than allowed.
    const next = Math.floor(Math.min(ttl(), validity.remainingHold(maxHold)));
    const isLast = next < ttl();
    if (isLast && validity.budgetOf(next) <= validity.remaining()) return validity.endBy(maxHold);
    try {
      await extend(next);
      if (isLast) return validity.endBy(maxHold);
      hasFailed = false;
    } catch (error) {
      if (!(error instanceof QuorumError)) return;
      hasFailed = true;
    }
  }
}

/** ms until the last multiple of `grid` before `ms` have passed. */
function untilShared(runtime: Runtime, ms: number, grid: number): number {
  return ms - ((runtime.monotonic() + ms) % grid);
}

/** Pauses for `ms`, or until the validity changes. Returns whether they have passed. */
function rest(validity: Validity, runtime: Runtime, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = runtime.timer(ms, () => resolve(true));
    validity.onChange = () => {
      cancel();
      resolve(false);
    };
  });
}
