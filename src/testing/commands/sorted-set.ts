import { compareBytes } from "./bytes.ts";
import { type Command, type Commands, range } from "./command.ts";
import type { Keyspace } from "./keyspace.ts";
import { positive } from "./list.ts";
import { formatScore, index, parseFloatStrict } from "./numbers.ts";
import { type ByteReply, ReplyError, syntaxError } from "./reply.ts";

type Member = readonly [member: string, score: number];

/** Commands on sorted sets. */
export const sortedSetCommands: Commands = {
  ZADD: {
    arity: -4,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, ...words]) {
      const options = new Set<string>();
      let start = 0;
      while (/^(?:nx|xx|gt|lt|ch|incr)$/i.test(words[start] ?? ""))
        options.add(words[start++]!.toUpperCase());
      return add(space, key!, options, words.slice(start));
    },
  },
  ZINCRBY: {
    arity: 4,
    keys: [0, 0, 1],
    write: true,
    run: (space, [key, by, member]) => add(space, key!, new Set(["INCR"]), [by!, member!]),
  },
  ZREM: {
    arity: -3,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, ...members]) {
      const zset = space.value(key!, "zset");
      const removed = members.filter((member) => zset?.delete(member)).length;
      space.tidy(key!);
      return removed;
    },
  },
  ZSCORE: {
    arity: 3,
    keys: [0, 0, 1],
    run(space, [key, member]) {
      const score = space.value(key!, "zset")?.get(member!);
      return score === undefined ? null : formatScore(score);
    },
  },
  ZCARD: { arity: 2, keys: [0, 0, 1], run: (space, [key]) => space.value(key!, "zset")?.size ?? 0 },
  ZRANK: {
    arity: 3,
    keys: [0, 0, 1],
    run(space, [key, member]) {
      const rank = sorted(space, key!).findIndex(([other]) => other === member);
      return rank < 0 ? null : rank;
    },
  },
  ZCOUNT: {
    arity: 4,
    keys: [0, 0, 1],
    run(space, [key, least, most]) {
      const inside = between(least!, most!);
      return sorted(space, key!).filter(inside).length;
    },
  },
  ZRANGE: { arity: -4, keys: [0, 0, 1], run: rangeCommand },
  ZRANGEBYSCORE: {
    arity: -4,
    keys: [0, 0, 1],
    run(space, [key, least, most, ...options]) {
      const { withScores, limit } = readOptions(options, ["WITHSCORES", "LIMIT"]);
      const inside = between(least!, most!);
      return list(limited(sorted(space, key!).filter(inside), limit), withScores);
    },
  },
  ZREMRANGEBYSCORE: {
    arity: 4,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, least, most]) {
      const inside = between(least!, most!);
      return remove(space, key!, sorted(space, key!).filter(inside));
    },
  },
  ZREMRANGEBYRANK: {
    arity: 4,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, start, stop]) {
      const [from, to] = [index(start!), index(stop!)];
      const members = sorted(space, key!);
      return remove(space, key!, members.slice(...range(from, to, members.length)));
    },
  },
  ZPOPMIN: popMin(),
};

/** ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member … */
function add(
  space: Keyspace,
  key: string,
  options: ReadonlySet<string>,
  words: readonly string[],
): ByteReply {
  if (words.length === 0 || words.length % 2 !== 0) throw syntaxError();
  const [nx, xx, gt, lt] = ["NX", "XX", "GT", "LT"].map((option) => options.has(option));
  if (nx && xx) throw new ReplyError("ERR XX and NX options at the same time are not compatible");
  if ((gt && (nx || lt)) || (lt && nx)) {
    throw new ReplyError("ERR GT, LT, and/or NX options at the same time are not compatible");
  }
  const increment = options.has("INCR");
  if (increment && words.length > 2) {
    throw new ReplyError("ERR INCR option supports a single increment-element pair");
  }
  const scores = words.filter((_, position) => position % 2 === 0).map(readScore);
  const zset = xx ? (space.value(key, "zset") ?? new Map<string, number>()) : space.collection(key, "zset");
  let added = 0;
  let changed = 0;
  let result: number | undefined;
  for (const [position, given] of scores.entries()) {
    const member = words[2 * position + 1]!;
    const before = zset.get(member);
    const score = increment && before !== undefined ? before + given : given;
    if (Number.isNaN(score)) throw new ReplyError("ERR resulting score is not a number (NaN)");
    if (before === undefined) {
      if (xx) continue;
      added++;
    } else {
      if (nx || (gt && score <= before) || (lt && score >= before)) continue;
      if (score !== before) changed++;
    }
    zset.set(member, score);
    result = score;
  }
  if (increment) return result === undefined ? null : formatScore(result);
  return options.has("CH") ? added + changed : added;
}

/** ZRANGE key start stop [BYSCORE] [REV] [LIMIT offset count] [WITHSCORES] */
function rangeCommand(space: Keyspace, [key, start, stop, ...words]: readonly string[]): ByteReply {
  const { byScore, reverse, withScores, limit } = readOptions(words, [
    "BYSCORE",
    "REV",
    "LIMIT",
    "WITHSCORES",
  ]);
  // For Redis, a count of -1 means no limit.
  if (limit && limit[1] !== -1 && !byScore) {
    throw new ReplyError(
      "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
    );
  }
  if (byScore) {
    const inside = reverse ? between(stop!, start!) : between(start!, stop!);
    const found = sorted(space, key!).filter(inside);
    return list(limited(reverse ? found.reverse() : found, limit), withScores);
  }
  const [from, to] = [index(start!), index(stop!)];
  const members = sorted(space, key!);
  if (reverse) members.reverse();
  return list(members.slice(...range(from, to, members.length)), withScores);
}

interface RangeOptions {
  byScore: boolean;
  reverse: boolean;
  withScores: boolean;
  limit?: readonly [offset: number, count: number];
}

function readOptions(words: readonly string[], allowed: readonly string[]): RangeOptions {
  const options: RangeOptions = { byScore: false, reverse: false, withScores: false };
  for (let position = 0; position < words.length; position++) {
    const option = words[position]!.toUpperCase();
    if (!allowed.includes(option)) throw syntaxError();
    if ((option === "BYSCORE" && options.byScore) || (option === "REV" && options.reverse))
      throw syntaxError();
    if (option === "BYSCORE") options.byScore = true;
    if (option === "REV") options.reverse = true;
    if (option === "WITHSCORES") options.withScores = true;
    if (option === "LIMIT") {
      if (position + 2 >= words.length) throw syntaxError();
      options.limit = [index(words[++position]!), index(words[++position]!)];
    }
  }
  return options;
}

function limited(members: readonly Member[], limit: RangeOptions["limit"]): readonly Member[] {
  if (!limit) return members;
  const [offset, count] = limit;
  if (offset < 0) return [];
  return members.slice(offset, count < 0 ? undefined : offset + count);
}

function popMin(): Command {
  return {
    arity: -2,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, count, ...more]) {
      if (more.length > 0) throw syntaxError();
      const most = count === undefined ? 1 : positive(count);
      const members = sorted(space, key!).slice(0, most);
      remove(space, key!, members);
      return list(members, true);
    },
  };
}

/** The members, ordered by score, then by their bytes. */
function sorted(space: Keyspace, key: string): Member[] {
  const members = [...(space.value(key, "zset") ?? [])];
  return members.sort(
    ([leftMember, left], [rightMember, right]) =>
      (left < right ? -1 : left > right ? 1 : 0) || compareBytes(leftMember, rightMember),
  );
}

function remove(space: Keyspace, key: string, members: readonly Member[]): number {
  const zset = space.value(key, "zset");
  for (const [member] of members) zset?.delete(member);
  space.tidy(key);
  return members.length;
}

function list(members: readonly Member[], withScores: boolean): ByteReply {
  return members.flatMap(([member, score]) => (withScores ? [member, formatScore(score)] : [member]));
}

/** Parses a range of scores: `1` includes 1, `(1` does not; `-inf`, `+inf`. Throws a `ReplyError` for others. */
function between(least: string, most: string): (member: Member) => boolean {
  const [low, aboveLow] = readBound(least);
  const [high, belowHigh] = readBound(most);
  return ([, score]) => (aboveLow ? score > low : score >= low) && (belowHigh ? score < high : score <= high);
}

function readBound(word: string): [bound: number, exclusive: boolean] {
  const exclusive = word.startsWith("(");
  const bound = parseFloatStrict(exclusive ? word.slice(1) : word);
  if (bound === undefined) throw new ReplyError("ERR min or max is not a float");
  return [bound, exclusive];
}

function readScore(word: string): number {
  const score = parseFloatStrict(word);
  if (score === undefined) throw new ReplyError("ERR value is not a valid float");
  return score;
}
