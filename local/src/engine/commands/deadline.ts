import { integer } from "./numbers.ts";
import { ReplyError, syntaxError } from "./reply.ts";

/** The expiry of a key as in a command: seconds (EX) or ms (PX) from now, or since 1970 (EXAT, PXAT). */
export interface Deadline {
  readonly unit: "EX" | "PX" | "EXAT" | "PXAT";
  readonly amount: string;
}

const int64Max = 2n ** 63n - 1n;
const int64Min = -(2n ** 63n);

/**
 * Parses an expiry option of SET or GETEX.
 *
 * @param option in upper case
 * @param amount the word after it
 * @param before an earlier expiry option; as in Redis, only the same option may be repeated
 * @throws ReplyError `ERR syntax error`
 */
export function expireOption(option: string, amount: string | undefined, before?: Deadline): Deadline {
  if (option !== "EX" && option !== "PX" && option !== "EXAT" && option !== "PXAT") throw syntaxError();
  if (amount === undefined || (before !== undefined && before.unit !== option)) throw syntaxError();
  return { unit: option, amount };
}

/**
 * The deadline, in ms since 1970, of a command like SET.
 *
 * @param now ms since 1970
 * @param command its name in lower case, for the error
 * @throws ReplyError when the amount is not an integer, not positive, or beyond 64 bits
 */
export function readDeadline(now: number, { unit, amount }: Deadline, command: string): number {
  const value = integer(amount);
  const ms = unit.startsWith("EX") ? value * 1000n : value;
  const until = unit.endsWith("AT") ? ms : ms + BigInt(now);
  if (value <= 0n || ms > int64Max || until > int64Max) throw invalidExpireTime(command);
  return Number(until);
}

/**
 * The deadline, in ms since 1970, of a command like EXPIRE. It may be in the past.
 *
 * @param now ms since 1970
 * @param command its name in lower case, for the error
 * @throws ReplyError when the amount is not an integer or beyond 64 bits
 */
export function readExpiry(now: number, { unit, amount }: Deadline, command: string): number {
  const value = integer(amount);
  const ms = unit.startsWith("EX") ? value * 1000n : value;
  const until = unit.endsWith("AT") ? ms : ms + BigInt(now);
  if (ms > int64Max || ms < int64Min || until > int64Max) throw invalidExpireTime(command);
  return Number(until);
}

/**
 * Whether the conditions of a command like EXPIRE allow a new deadline.
 *
 * @param conditions of NX, XX, GT and LT, in upper case
 * @param before the deadline so far; undefined: none, which counts as infinite, as in Redis: it is greater than every one
 */
export function mayExpire(
  conditions: ReadonlySet<string>,
  before: number | undefined,
  until: number,
): boolean {
  if (conditions.has("NX") && before !== undefined) return false;
  if (conditions.has("XX") && before === undefined) return false;
  if (conditions.has("GT") && (before === undefined || until <= before)) return false;
  return !(conditions.has("LT") && before !== undefined && until >= before);
}

function invalidExpireTime(command: string): ReplyError {
  return new ReplyError(`ERR invalid expire time in '${command}' command`);
}
