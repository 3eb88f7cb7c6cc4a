import { systemRuntime } from "../runtime.ts";
import { malformed, WebhookVerificationError } from "./provider.ts";

/** Options of providers whose senders sign the time. */
export interface ToleranceOptions {
  /**
   * How far the signed time may be from now, in ms, in the past and in the future: an integer, at least
   * 1 000, because most senders sign whole seconds.
   */
  readonly tolerance?: number | undefined;
  /** The wall clock, in ms since 1970. Default: the platform's. */
  readonly now?: (() => number) | undefined;
}

/** Refuses a signed time, in ms since 1970. */
export type ToleranceCheck = (timestamp: number) => void;

/**
 * Refuses times that are further away than the tolerance, `fallback` by default. Both times are cut to whole
 * seconds, as most senders cut theirs, so that no age is overstated.
 *
 * @throws {RangeError} at once, when `tolerance` is out of range; {@link TypeError} when `now` is no function.
 */
export function toleranceCheck(
  provider: string,
  { tolerance, now = systemRuntime.now }: ToleranceOptions,
  fallback: number,
): ToleranceCheck {
  if (tolerance !== undefined && !(Number.isSafeInteger(tolerance) && tolerance >= 1_000)) {
    throw new RangeError(`tolerance must be an integer of at least 1000 ms, not ${String(tolerance)}`);
  }
  if (typeof now !== "function") throw new TypeError(`now must be a function, not ${typeof now}`);

  return (timestamp) => {
    const age = (Math.floor(now() / 1_000) - Math.floor(timestamp / 1_000)) * 1_000;
    // Written so that what is not a number, a broken clock's answer or a time that is missing, is refused.
    if (Math.abs(age) <= (tolerance ?? fallback)) return;
    const why =
      age > 0 ? "signed too long ago" : age < 0 ? "signed too far in the future" : "no time to compare";
    throw new WebhookVerificationError(provider, "outside-tolerance", why);
  };
}

/**
 * The time in ms since 1970, of a header's seconds. They have ten digits (until the year 2286), no more and
 * no fewer: where nothing stands between time and body, digits could otherwise move from one into the other,
 * and a captured delivery be read as one that was never sent.
 *
 * @throws {WebhookVerificationError} `malformed-header`.
 */
export function parseSeconds(provider: string, header: string, seconds: string): number {
  if (!/^\d{10}$/.test(seconds)) throw malformed(provider, header, "is not a time of ten digits");
  return Number(seconds) * 1_000;
}
