import { integer } from "./numbers.ts";
import { ReplyError, syntaxError } from "./reply.ts";

/** When a key shall end, as a command says it: so many seconds or ms from now, or at a time since 1970. */
export interface Deadline {
  readonly unit: "EX" | "PX" | "EXAT" | "PXAT";
  readonly amount: string;
}

const int64Max = 2n ** 63n - 1n;
const int64Min = -(2n ** 63n);

/**
 * Reads one expiry option of SET or GETEX, in capitals, and the word after it.
 *
 * @param before the expiry option that came earlier; only the same one may come again, as in Redis
 * @throws ReplyError `ERR syntax error`
 */
export function expireOption(option: string, amount: string | undefined, before?: Deadline): Deadline {
  if (option !== "EX" && option !== "PX" && option !== "EXAT" && option !== "PXAT") throw syntaxError();
  if (amount === undefined || (before !== undefined && before.unit !== option)) throw syntaxError();
  return { unit: option, amount };
}

/**
 * The ms since 1970 that a SET-like command means.
 *
 * @param command in small letters, for the error
 * @throws ReplyError when it is no integer, not positive, or beyond 64 bits
 */
export function readDeadline(now: number, { unit, amount }: Deadline, command: string): number {
  const value = integer(amount);
  const ms = unit.startsWith("EX") ? value * 1000n : value;
  const until = unit.endsWith("AT") ? ms : ms + BigInt(now);
  if (value <= 0n || ms > int64Max || until > int64Max) throw invalidExpireTime(command);
  return Number(until);
}

/**
 * The ms since 1970 that an EXPIRE-like command means; it may have passed.
 *
 * @throws ReplyError when it is no integer or beyond 64 bits
 */
export function readExpiry(now: number, { unit, amount }: Deadline, command: string): number {
  const value = integer(amount);
  const ms = unit.startsWith("EX") ? value * 1000n : value;
  const until = unit.endsWith("AT") ? ms : ms + BigInt(now);
  if (ms > int64Max || ms < int64Min || until > int64Max) throw invalidExpireTime(command);
  return Number(until);
}

function invalidExpireTime(command: string): ReplyError {
  return new ReplyError(`ERR invalid expire time in '${command}' command`);
}
