import type { EventHook } from "../lock/events.ts";
import type { Settings } from "../lock/options.ts";
import type { IdempotencyEvent } from "./events.ts";
import type { RunRecord } from "./record.ts";
import type { Codec } from "./result.ts";

export interface RecordKeys {
  readonly key: string;
  readonly name: string;
  readonly counter: string;
}

/** For the fields see the options of `run()`. */
export interface RunRequest<Value> extends RecordKeys {
  /** `ttl` is the lease. */
  readonly settings: Settings;
  readonly fingerprint: string;
  readonly lock: readonly string[] | undefined;
  readonly note: string | undefined;
  readonly retention: number;
  readonly codec: Codec<Value>;
  readonly signal: AbortSignal | undefined;
  /** Or Infinity. */
  readonly deadline: number;
  readonly failOpen: boolean;
  readonly maxAttempts: number;
  readonly maxResult: number;
  /** Whether a complete record is too old to be returned. Default: never. */
  readonly isStale: ((record: RunRecord) => boolean) | undefined;
  readonly onEvent: EventHook<IdempotencyEvent> | undefined;
}

type Timing = Pick<RunRequest<unknown>, "settings" | "retention">;

/** In ms. A whole lease would be too long for the sender of a webhook. */
export function settleTimeout({ timeout, wait }: Settings): number {
  return Math.max(wait, 2 * timeout);
}

/** ms until the other run's lease ends. At least a second, because the run may have renewed it. */
export function retryAfter({ settings }: Timing, { at }: RunRecord): number {
  const age = settings.runtime.now() - at;
  return Math.min(settings.ttl, Math.max(1_000, settings.ttl - age));
}

/** ms, as far as the wall clocks agree. At least a second. */
export function remainingRetention({ settings, retention }: Timing, { at }: RunRecord): number {
  const age = Math.max(0, settings.runtime.now() - at);
  return Math.max(1_000, Math.floor(retention - age));
}
