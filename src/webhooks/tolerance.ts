import { systemRuntime } from "../runtime/runtime.ts";
import { malformed } from "./header.ts";
import type { ToleranceOptions } from "./options.ts";
import { WebhookVerificationError } from "./provider.ts";

/**
 * Throws unless a signed time, in ms since 1970, is within the tolerance. With `expires`, unless now is between the two,
 * give or take the tolerance.
 */
export type ToleranceCheck = (timestamp: number, expires?: number) => void;

/** Between two clocks, in ms, where the sender says until when a delivery may be accepted. */
export const clockSkew = 10_000;

/**
 * Makes a check of signed times. All times are cut to whole seconds, as most senders cut theirs: the dropped fraction
 * would otherwise count as age.
 *
 * @param provider the provider's name, for the error, which is a `WebhookVerificationError`: `outside-tolerance`
 * @param fallback the tolerance, in ms, if the options have none
 * @param anyFuture whether times in the future are not compared. Default false
 * @throws {RangeError} `tolerance` is out of range
 * @throws {TypeError} `now` is not a function
 *
 * @example
 * const checkTolerance = toleranceCheck("acme", { tolerance: 60_000 });
 * checkTolerance(Date.parse(time));
 */
export function toleranceCheck(
  provider: string,
  { tolerance, now = systemRuntime.now }: ToleranceOptions,
  fallback = 300_000,
  anyFuture = false,
): ToleranceCheck {
  if (tolerance !== undefined && !(Number.isSafeInteger(tolerance) && tolerance >= 1_000)) {
    throw new RangeError(`tolerance must be an integer of at least 1000 ms, not ${String(tolerance)}`);
  }
  if (typeof now !== "function") throw new TypeError(`now must be a function, not ${typeof now}`);

  return (timestamp, expires) => {
    const allowed = tolerance ?? (expires === undefined ? fallback : clockSkew);
    const time = wholeSeconds(now());
    const early = anyFuture ? Number.NEGATIVE_INFINITY : wholeSeconds(timestamp) - time;
    const late = time - wholeSeconds(expires ?? timestamp);
    const off = Math.max(early, late);
    // In this form NaN is refused: the answer of a broken clock, or a time that is missing.
    if (off <= allowed) return;
    const by = `${off / 1_000} s${expires === undefined ? "" : " beyond its validity"}, and ${allowed / 1_000} s are allowed`;
    let why = "no time to compare";
    if (off === early) why = `signed too far in the future: ${by} (do the clocks agree?)`;
    if (off === late) why = `signed too long ago: ${by}`;
    throw new WebhookVerificationError(provider, "outside-tolerance", why);
  };
}

function wholeSeconds(time: number): number {
  return Math.floor(time / 1_000) * 1_000;
}

/**
 * Parses a header's seconds into ms since 1970. Exactly ten digits, which holds until the year 2286: where nothing
 * separates time and body, a digit could otherwise be moved from one into the other, and a captured delivery be read
 * as one that was never sent.
 *
 * @param provider the provider's name, for the error
 * @throws {WebhookVerificationError} `malformed-header`
 *
 * @example
 * const timestamp = parseSeconds("acme", "acme-time", requireHeader("acme", request, "acme-time"));
 */
export function parseSeconds(provider: string, header: string, seconds: string): number {
  if (!/^\d{10}$/.test(seconds)) throw malformed(provider, header, "is not a time of ten digits");
  return Number(seconds) * 1_000;
}
