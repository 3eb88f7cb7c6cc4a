import llimits from "fengari/src/llimits.js";

// At module scope: it must happen before the machine is loaded, which copies the function.
llimits.luai_nummod = remainder;

/**
 * Whether the machine uses {@link remainder}. The call also keeps a bundler from removing this file, whose only other
 * purpose is a side effect.
 */
export function remainderIsReplaced(): boolean {
  return llimits.luai_nummod === remainder;
}

/**
 * `dividend % divisor` by the formula of Lua 5.1. That of 5.3 returns -0 for -4 % 2, which would be printed as "-0".
 *
 * @example
 * remainder(undefined, -7, 3); // 2
 */
export function remainder(_state: unknown, dividend: number, divisor: number): number {
  return dividend - Math.floor(dividend / divisor) * divisor;
}
