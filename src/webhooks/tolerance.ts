import { systemRuntime } from "../runtime/runtime.ts";
import { malformed } from "./header.ts";
import type { ToleranceOptions } from "./options.ts";
import { WebhookVerificationError } from "./provider.ts";

/**
 * Throws a `WebhookVerificationError` (`outside-tolerance`) unless the time, in ms since 1970, is within the tolerance,
 * or with `expires`, unless now is between the two, give or take the tolerance.
 */
export type ToleranceCheck = (timestamp: number, expires?: number) => void;

/** In ms. For senders that say until when a delivery may be accepted. */
export const clockSkew = 10_000;

/**
 * Makes a check of signed times. Times are cut to whole seconds, because the fraction would count as age with senders
 * that cut theirs.
 *
 * @param fallback the tolerance in ms if the options have none
 * @param anyFuture accepts all times in the future
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
    // In this form NaN is refused: a broken clock, or a missing time.
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
 * Parses ten digits of seconds into ms since 1970. If nothing separates time and body, a digit could otherwise move
 * between them, and a captured delivery would read as another one.
 *
 * @throws {WebhookVerificationError} `malformed-header`
 *
 * @example
 * const timestamp = parseSeconds("acme", "acme-time", requireHeader("acme", request, "acme-time"));
 */
export function parseSeconds(provider: string, header: string, seconds: string): number {
  if (!/^\d{10}$/.test(seconds)) throw malformed(provider, header, "is not a time of ten digits");
  return Number(seconds) * 1_000;
}
