import { QuorumError, secondsHint } from "../errors/errors.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Validity } from "./validity.ts";

export interface AutoExtension {
  readonly runtime: Runtime;
  ttl(): number;
  /** ms since the hold began. */
  held(): number;
  readonly maxHold: number;
  readonly limit: number;
  /** Rejects with `NO_QUORUM` if it may be tried again. */
  extend(ttl: number): Promise<unknown>;
}

/** Of a ttl: extensions that are due within so much of it share requests. */
const together = 1 / 64;

/** Of a validity, after a failure. */
const shortestPause = 1 / 16;

/** After a failure the next try comes at half of the validity that remains. */
export async function autoExtend(validity: Validity, extension: AutoExtension): Promise<void> {
  const { runtime, ttl, held, maxHold, limit, extend } = extension;
  const endsBy = maxHold < limit ? `maxHold ${maxHold} ms${secondsHint(maxHold)}` : "deadline";
  void validity.signal; // the end is noticed even if nobody asks
  let hasFailed = false;
  let isLast = false;
  let usual = ttl();
  while (validity.endsBy === undefined) {
    // If the last extension fails, the pauses stay as long as usual.
    if (!isLast) usual = ttl();
    const whole = validity.budgetOf(usual);
    const remaining = validity.remaining();
    const pause = hasFailed
      ? Math.max(remaining / 2, shortestPause * whole)
      : untilShared(runtime, remaining - whole / 2, together * usual);
    const isDue = await rest(validity, runtime, Math.max(Math.floor(pause), 1));
    if (validity.released || validity.loss) return;
    if (!isDue) continue;
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

function untilShared(runtime: Runtime, ms: number, grid: number): number {
  return ms - ((runtime.monotonic() + ms) % grid);
}

function rest(validity: Validity, runtime: Runtime, ms: number): Promise<boolean> {
  return new Promise((resolve) => {
    const cancel = runtime.timer(ms, () => resolve(true));
    validity.onChange = () => {
      cancel();
      resolve(false);
    };
  });
}
