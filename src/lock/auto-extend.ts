import { QuorumError, secondsHint } from "../errors/errors.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Validity } from "./validity.ts";

/** What auto-extension depends on. */
export interface AutoExtension {
  readonly runtime: Runtime;
  /** ms to request each time. It changes when the holder extends by hand. */
  ttl(): number;
  /** ms since the hold began. */
  held(): number;
  /** Longest time to hold, in ms. */
  readonly maxHold: number;
  /** ms from the beginning of the hold to the deadline. Infinity: there is none. */
  readonly limit: number;
  /** Extends once. Rejects with `NO_QUORUM` where it may be tried again. */
  extend(ttl: number): Promise<unknown>;
}

/** Of a ttl: extensions that are due within so much of it come at one moment, so that they share requests. */
const together = 1 / 64;

/** Of a validity: the shortest pause after an extension that failed. */
const shortestPause = 1 / 16;

/**
 * Extends at half of the ttl, or a little earlier together with others, again and again, until it is released, lost or held
 * for as long as `maxHold` and its limit allow. After a failure the next try comes at half of the validity that remains. A loss
 * ends it at once.
 */
export async function autoExtend(validity: Validity, extension: AutoExtension): Promise<void> {
  const { runtime, ttl, held, maxHold, limit, extend } = extension;
  const endsBy = maxHold < limit ? `maxHold ${maxHold} ms${secondsHint(maxHold)}` : "deadline";
  void validity.signal; // from now on the end is noticed even if nobody asks
  let hasFailed = false;
  let isLast = false;
  let usual = ttl();
  // The deadline may have cut its ttl already.
  while (validity.endsBy === undefined) {
    // The last extension is cut. If it fails, the pauses stay as long as the usual ones.
    if (!isLast) usual = ttl();
    const whole = validity.budgetOf(usual);
    const remaining = validity.remaining();
    const pause = hasFailed
      ? Math.max(remaining / 2, shortestPause * whole)
      : untilShared(runtime, remaining - whole / 2, together * usual);
    const isDue = await rest(validity, runtime, Math.max(Math.floor(pause), 1));
    if (validity.released || validity.loss) return;
    if (!isDue) continue;
    // So that nothing is held longer than allowed.
    const next = Math.floor(Math.min(usual, Math.min(maxHold, limit) - held()));
    isLast = next < usual;
    try {
      if (!isLast || validity.budgetOf(next) > validity.remaining()) await extend(next);
      hasFailed = false;
    } catch (error) {
      if (!(error instanceof QuorumError)) return;
      hasFailed = true;
    }
    if (isLast && !hasFailed) validity.endsBy = endsBy;
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
