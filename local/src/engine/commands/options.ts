import { type Command, reads } from "./command.ts";
import { globMatcher } from "./glob.ts";
import type { Keyspace } from "./keyspace.ts";
import { index, integer, parseInteger } from "./numbers.ts";
import { ReplyError, syntaxError } from "./reply.ts";

// Arguments that commands of several types have in common.

/** The options of SCAN, SSCAN, HSCAN and ZSCAN. */
export interface ScanOptions {
  readonly matches: (name: string) => boolean;
  readonly count: number;
  readonly type: string | undefined;
}

/** Throws a `ReplyError` unless a word is a cursor. */
export function checkCursor(cursor: string): void {
  if (!/^[0-9]{1,16}$/.test(cursor)) throw new ReplyError("ERR invalid cursor");
}

/** Parses [MATCH pattern] [COUNT count], and [TYPE type] if it is allowed. */
export function scanOptions(words: readonly string[], allowsType = false): ScanOptions {
  let matches = (_name: string) => true;
  let count = 10;
  let type: string | undefined;
  for (let position = 0; position < words.length; position += 2) {
    const value = words[position + 1];
    if (value === undefined) throw syntaxError();
    const option = words[position]!.toUpperCase();
    if (option === "MATCH") {
      matches = globMatcher(value);
    } else if (option === "TYPE" && allowsType) {
      type = value.toLowerCase();
    } else if (option === "COUNT") {
      count = index(value);
      if (count < 1) throw syntaxError();
    } else {
      throw syntaxError();
    }
  }
  return { matches, count, type };
}

/**
 * SSCAN, HSCAN or ZSCAN: all at once, as Redis scans small collections.
 *
 * @param read the items of a key, by name; undefined if it does not exist
 */
export function scanCommand(
  read: (space: Keyspace, key: string) => ReadonlyMap<string, readonly string[]> | undefined,
): Command {
  return reads(-3, (space, [key, cursor, ...words]) => {
    checkCursor(cursor!);
    const items = read(space, key!);
    // Redis does not look at the options of a scan of nothing.
    if (!items) return ["0", []];
    const { matches } = scanOptions(words);
    return ["0", [...items].flatMap(([name, item]) => (matches(name) ? item : []))];
  });
}

/** Parses an integer from 1. Throws a `ReplyError` that names the argument. */
export function atLeastOne(name: string, word: string): number {
  const value = parseInteger(word);
  if (value === undefined || value < 1n) throw new ReplyError(`ERR ${name} should be greater than 0`);
  return Number(value);
}

/** Parses an integer from 0. Throws a `ReplyError` that names the argument. */
export function notNegative(name: string, word: string): number {
  const value = parseInteger(word);
  if (value === undefined || value < 0n) throw new ReplyError(`ERR ${name} can't be negative`);
  return Number(value);
}

/** What SRANDMEMBER, HRANDFIELD and ZRANDMEMBER draw: up to `count` different items, or exactly -`count` any. */
export function draw<Item>(items: readonly Item[], count: bigint, random: () => number): Item[] {
  if (items.length === 0) return [];
  if (count < 0n) {
    return Array.from({ length: Number(-count) }, () => items[Math.floor(random() * items.length)]!);
  }
  const rest = [...items];
  const drawn: Item[] = [];
  while (rest.length > 0 && drawn.length < count) {
    drawn.push(...rest.splice(Math.floor(random() * rest.length), 1));
  }
  return drawn;
}

/** Parses the count of a draw. */
export function drawCount(word: string): bigint {
  const count = integer(word);
  // Redis refuses more than half of what an integer can be; nothing has room for a fraction of that.
  if (count < -(2n ** 62n) || count > 2n ** 62n) throw new ReplyError("ERR value is out of range");
  return count;
}
