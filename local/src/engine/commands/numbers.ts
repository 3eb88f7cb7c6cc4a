// Parsing and printing of numbers in Redis and Lua 5.1: as C's strtoll, strtod and printf do.

import { ReplyError } from "./reply.ts";

const int64Max = 2n ** 63n - 1n;
const int64Min = -(2n ** 63n);

/** Parses a signed 64-bit integer as Redis does: without `+`, blanks or leading zeros. Undefined if it is not one. */
export function parseInteger(bytes: string): bigint | undefined {
  if (!/^(?:0|-?[1-9][0-9]{0,18})$/.test(bytes)) return undefined;
  const value = BigInt(bytes);
  return value < int64Min || value > int64Max ? undefined : value;
}

/** Parses a signed 64-bit integer. Throws the `ReplyError` `ERR value is not an integer or out of range`. */
export function integer(bytes: string): bigint {
  const value = parseInteger(bytes);
  if (value === undefined) throw new ReplyError("ERR value is not an integer or out of range");
  return value;
}

/** Parses an index or a count, which need not be exact beyond 2^53. Throws a `ReplyError` if it is not an integer. */
export function index(bytes: string): number {
  return Number(integer(bytes));
}

/** Adds two integers. Throws a `ReplyError` if the sum exceeds 64 bits. */
export function addIntegers(left: bigint, right: bigint): bigint {
  const sum = left + right;
  if (sum < int64Min || sum > int64Max) {
    throw new ReplyError("ERR increment or decrement would overflow");
  }
  return sum;
}

/** Parses a whole string as C's strtod does, `inf` included. Undefined for NaN and anything else. */
export function parseFloatStrict(bytes: string): number | undefined {
  if (/^[+-]?(?:inf|infinity)$/i.test(bytes)) return bytes.startsWith("-") ? -Infinity : Infinity;
  if (/^[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?$/i.test(bytes)) return Number(bytes);
  const hex = /^([+-]?)0x([0-9a-f]*)\.?([0-9a-f]*)(?:p([+-]?[0-9]+))?$/i.exec(bytes);
  if (!hex) return undefined;
  const [, sign, whole = "", fraction = "", exponent = "0"] = hex;
  if (!whole && !fraction) return undefined;
  const power = Number(exponent) - 4 * fraction.length;
  // In two steps: a power of two alone may be out of range where the number is not.
  const first = Math.max(-1_000, Math.min(1_000, power));
  const value =
    Number(`0x${whole}${fraction}`) * 2 ** first * Math.min(2 ** (power - first), Number.MAX_VALUE);
  return sign === "-" ? -value : value;
}

/**
 * Prints a number as C's `%.<precision>g`: the shorter of plain and exponent form, without trailing zeros.
 *
 * @example
 * formatGeneral(2 ** 53, 14); // "9.007199254741e+15", as Lua 5.1 prints it
 */
export function formatGeneral(value: number, precision: number): string {
  if (!Number.isFinite(value)) return formatSpecial(value);
  const digits = Math.max(1, precision);
  const scientific = toExponential(value, digits - 1);
  const exponent = Number(scientific.slice(scientific.indexOf("e") + 1));
  // toExponential and toFixed drop the sign of -0, which C prints.
  const sign = Object.is(value, -0) ? "-" : "";
  if (exponent < -4 || exponent >= digits) {
    const mantissa = scientific.slice(0, scientific.indexOf("e"));
    return `${sign}${withoutZeros(mantissa)}${formatExponent(exponent)}`;
  }
  return sign + withoutZeros(toFixed(value, Math.min(100, digits - 1 - exponent)));
}

/** Prints a number as C's `%.<precision>e`. */
export function formatScientific(value: number, precision: number): string {
  if (!Number.isFinite(value)) return formatSpecial(value);
  const [mantissa, exponent] = toExponential(value, precision).split("e") as [string, string];
  return `${Object.is(value, -0) ? "-" : ""}${mantissa}${formatExponent(Number(exponent))}`;
}

/** Prints a number as C's `%.<precision>f`: all digits, also of numbers far beyond 2^53. */
export function formatFixed(value: number, precision: number): string {
  if (!Number.isFinite(value)) return formatSpecial(value);
  const sign = Object.is(value, -0) ? "-" : "";
  // From 1e21 on toFixed uses the exponent form. Such a number is an integer, which BigInt prints in full.
  if (Math.abs(value) < 1e21) return sign + toFixed(value, precision);
  return BigInt(value).toString() + (precision > 0 ? `.${"0".repeat(precision)}` : "");
}

// JavaScript rounds ties up, C rounds them to even: 0.5 is printed as "0". This number of further digits is
// enough to recognize a tie: a double may have more digits, but never after so many zeros.
const tieDigits = 40;

function toFixed(value: number, precision: number): string {
  const rounded = value.toFixed(precision);
  if (Number.isInteger(value)) return rounded;
  const exact = value.toFixed(Math.min(100, precision + tieDigits));
  const cut = exact.slice(0, exact.indexOf(".") + 1 + precision);
  return isTieToEven(cut, exact) ? cut.replace(/\.$/, "") : rounded;
}

function toExponential(value: number, precision: number): string {
  const rounded = value.toExponential(precision);
  const [exact, exponent] = value.toExponential(Math.min(100, precision + tieDigits)).split("e") as [
    string,
    string,
  ];
  const cut = exact.slice(0, exact.indexOf(".") + 1 + precision);
  return isTieToEven(cut, exact) ? `${cut.replace(/\.$/, "")}e${exponent}` : rounded;
}

/** Whether `exact` lies exactly half a unit above `cut`, whose last digit is even. */
function isTieToEven(cut: string, exact: string): boolean {
  return /[02468]\.?$/.test(cut) && /^50*$/.test(exact.slice(cut.length));
}

function formatSpecial(value: number): string {
  // JavaScript does not show the sign of NaN. On x86, 0/0 is printed as "-nan".
  return Number.isNaN(value) ? "-nan" : value > 0 ? "inf" : "-inf";
}

function formatExponent(exponent: number): string {
  return `e${exponent < 0 ? "-" : "+"}${String(Math.abs(exponent)).padStart(2, "0")}`;
}

function withoutZeros(digits: string): string {
  return digits.includes(".") ? digits.replace(/\.?0+$/, "") : digits;
}

/** Prints a sorted set's score as Redis 7.0 does in a reply. */
export function formatScore(score: number): string {
  return formatGeneral(score, 17);
}
