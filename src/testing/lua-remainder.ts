import llimits from "fengari/src/llimits.js";

// This file must be loaded before any other of fengari's: the machine copies the function when it is loaded.
llimits.luai_nummod = remainder;

/**
 * `dividend % divisor` by the formula of Lua 5.1. That of 5.3 gives -0 for -4 % 2, and it would be printed.
 *
 * @example
 * remainder(undefined, -7, 3); // 2
 */
export function remainder(_state: unknown, dividend: number, divisor: number): number {
  return dividend - Math.floor(dividend / divisor) * divisor;
}
