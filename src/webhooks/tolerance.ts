import { systemRuntime } from "../runtime.ts";
import { malformed } from "./header.ts";
import { WebhookVerificationError } from "./provider.ts";

/** Options of providers whose senders sign the time. */
export interface ToleranceOptions {
  /**
   * The largest accepted distance between the signed time and now, in ms, in the past and in the future. An integer
   * of at least 1 000, because most senders sign whole seconds. Default 300 000 (5 minutes), unless the provider says
   * otherwise.
   */
  readonly tolerance?: number | undefined;
  /** The wall clock, in ms since 1970. Default: the platform's clock. */
  readonly now?: (() => number) | undefined;
}

/** Throws unless a signed time, in ms since 1970, is within the tolerance. */
export type ToleranceCheck = (timestamp: number) => void;

/**
 * Makes a check of signed times. Both times are cut to whole seconds, as most senders cut theirs: the dropped fraction
 * would otherwise count as age.
 *
 * @param fallback the tolerance, in ms, if the options have none
 * @throws {RangeError} `tolerance` is out of range
 * @throws {TypeError} `now` is not a function
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
    // In this form NaN is refused: the answer of a broken clock, or a time that is missing.
    if (Math.abs(age) <= (tolerance ?? fallback)) return;
    const why =
      age > 0 ? "signed too long ago" : age < 0 ? "signed too far in the future" : "no time to compare";
    throw new WebhookVerificationError(provider, "outside-tolerance", why);
  };
}

/**
 * Parses a header's seconds into ms since 1970. Exactly ten digits, which holds until the year 2286: where nothing
 * separates time and body, a digit could otherwise be moved from one into the other, and a captured delivery be read
 * as one that was never sent.
 *
 * @throws {WebhookVerificationError} `malformed-header`
 */
export function parseSeconds(provider: string, header: string, seconds: string): number {
  if (!/^\d{10}$/.test(seconds)) throw malformed(provider, header, "is not a time of ten digits");
  return Number(seconds) * 1_000;
}
