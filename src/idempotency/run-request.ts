import type { EventHook } from "../lock/events.ts";
import type { Settings } from "../lock/options.ts";
import type { IdempotencyEvent } from "./events.ts";
import type { RunRecord } from "./record.ts";
import type { Codec } from "./result.ts";

/** A key, and the names that it has in Redis. */
export interface RecordKeys {
  readonly key: string;
  /** Of the record. */
  readonly name: string;
  /** Of the count of runs. */
  readonly counter: string;
}

/** Everything that one call of `run()` needs. */
export interface RunRequest<Value> extends RecordKeys {
  /** `ttl` is the lease. */
  readonly settings: Settings;
  readonly fingerprint: string;
  /** The resources that are locked with the key. Undefined: the key alone is claimed. */
  readonly lock: readonly string[] | undefined;
  /** Stored with these locks. */
  readonly note: string | undefined;
  /** How long a result is kept, in ms. */
  readonly retention: number;
  readonly codec: Codec<Value>;
  readonly signal: AbortSignal | undefined;
  /** Wall-clock time in ms since 1970, or Infinity. */
  readonly deadline: number;
  /** Whether the handler runs without protection in an outage. */
  readonly failOpen: boolean;
  /** Infinity: runs are not counted. */
  readonly maxAttempts: number;
  /** The most bytes that a record with its result may take in a request. */
  readonly maxResult: number;
  /** Whether a complete record is too old to be returned: it is removed, and the handler may run. Default: none is. */
  readonly isStale: ((record: RunRecord) => boolean) | undefined;
  readonly onEvent: EventHook<IdempotencyEvent> | undefined;
}

type Timing = Pick<RunRequest<unknown>, "settings" | "retention">;

/**
 * The longest time in ms to wait for a split vote to end, or for a result to reach its quorum. In a whole lease, the sender
 * of a webhook would give up.
 */
export function settleTimeout({ timeout, wait }: Settings): number {
  return Math.max(wait, 2 * timeout);
}

/**
 * When to try again, in ms: by then the other run has ended, or its lease has. At least a second, because the lease may
 * have been renewed.
 */
export function retryAfter({ settings }: Timing, { at }: RunRecord): number {
  const age = settings.runtime.now() - at;
  return Math.min(settings.ttl, Math.max(1_000, settings.ttl - age));
}

/** ms that remain of a result's retention, as far as the wall clocks agree. At least a second. */
export function remainingRetention({ settings, retention }: Timing, { at }: RunRecord): number {
  const age = Math.max(0, settings.runtime.now() - at);
  return Math.max(1_000, Math.floor(retention - age));
}
