import llimits from "fengari/src/llimits.js";

// At module scope, because it has to happen before the machine is loaded, which then takes its own copy.
llimits.luai_nummod = remainder;

/**
 * Whether the machine calculates remainders by {@link remainder}. Asking is what keeps this file in a bundle.
 */
export function remainderIsReplaced(): boolean {
  return llimits.luai_nummod === remainder;
}

/**
 * `dividend % divisor` by the formula of Lua 5.1. That of 5.3 gives -0 for -4 % 2, and it would be printed.
 *
 * @example
 * remainder(undefined, -7, 3); // 2
 */
export function remainder(_state: unknown, dividend: number, divisor: number): number {
  return dividend - Math.floor(dividend / divisor) * divisor;
}
