import { compareBytes } from "./bytes.ts";
import { type Commands, countedKeys, reads, writes } from "./command.ts";
import type { Keyspace } from "./keyspace.ts";
import { positive, readCount } from "./list.ts";
import { formatScore, parseFloatStrict } from "./numbers.ts";
import { atLeastOne, draw, drawCount, scanCommand } from "./options.ts";
import { type ByteReply, ReplyError, syntaxError } from "./reply.ts";

/** A member of a sorted set. */
export type Member = readonly [member: string, score: number];

/** Commands on sorted sets. Those on ranges and on several sets have files of their own. */
export const sortedSetCommands: Commands = {
  ZADD: writes(-4, (space, [key, ...words]) => {
    const options = new Set<string>();
    let start = 0;
    while (/^(?:nx|xx|gt|lt|ch|incr)$/i.test(words[start] ?? "")) options.add(words[start++]!.toUpperCase());
    return addMembers(space, key!, options, words.slice(start));
  }),
  ZINCRBY: writes(4, (space, [key, by, member]) =>
    addMembers(space, key!, new Set(["INCR"]), [by!, member!]),
  ),
  ZREM: writes(-3, (space, [key, ...members]) => {
    const zset = space.value(key!, "zset");
    const removed = members.filter((member) => zset?.delete(member)).length;
    space.tidy(key!);
    return removed;
  }),
  ZSCORE: reads(3, (space, [key, member]) => scoreOf(space.value(key!, "zset"), member!)),
  ZMSCORE: reads(-3, (space, [key, ...members]) => {
    const zset = space.value(key!, "zset");
    return members.map((member) => scoreOf(zset, member));
  }),
  ZCARD: reads(2, (space, [key]) => space.value(key!, "zset")?.size ?? 0),
  ZRANK: reads(3, (space, [key, member]) => rankOf(sorted(space, key!), member!)),
  ZREVRANK: reads(3, (space, [key, member]) => rankOf(sorted(space, key!).reverse(), member!)),
  ZPOPMIN: writes(-2, (space, words) => pop(space, words, "MIN")),
  ZPOPMAX: writes(-2, (space, words) => pop(space, words, "MAX")),
  ZMPOP: { arity: -4, keys: countedKeys(0), write: true, run: popFromFirst },
  ZRANDMEMBER: reads(-2, drawMembers),
  ZSCAN: scanCommand((space, key) => {
    const members = space.value(key, "zset") && sorted(space, key);
    return members && new Map(members.map(([member, score]) => [member, [member, formatScore(score)]]));
  }),
};

function scoreOf(zset: ReadonlyMap<string, number> | undefined, member: string): ByteReply {
  const score = zset?.get(member);
  return score === undefined ? null : formatScore(score);
}

function rankOf(members: readonly Member[], wanted: string): ByteReply {
  const rank = members.findIndex(([member]) => member === wanted);
  return rank < 0 ? null : rank;
}

/** ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member …; `options` are in upper case. */
export function addMembers(
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

function readScore(word: string): number {
  const score = parseFloatStrict(word);
  if (score === undefined) throw new ReplyError("ERR value is not a valid float");
  return score;
}

function pop(space: Keyspace, [key, count, ...more]: readonly string[], end: "MIN" | "MAX"): ByteReply {
  if (more.length > 0) throw syntaxError();
  const most = count === undefined ? 1 : positive(count);
  return list(popMembers(space, key!, end, most), true);
}

function popMembers(space: Keyspace, key: string, end: "MIN" | "MAX", most: number): readonly Member[] {
  const members = sorted(space, key);
  if (end === "MAX") members.reverse();
  const popped = members.slice(0, most);
  removeMembers(space, key, popped);
  return popped;
}

/** ZMPOP numkeys key … MIN | MAX [COUNT count] */
function popFromFirst(space: Keyspace, [count, ...words]: readonly string[]): ByteReply {
  const keyCount = atLeastOne("numkeys", count!);
  const end = words[keyCount]?.toUpperCase();
  if (end !== "MIN" && end !== "MAX") throw syntaxError();
  const most = readCount(words.slice(keyCount + 1));
  for (const key of words.slice(0, keyCount)) {
    if (!space.value(key, "zset")) continue;
    const popped = popMembers(space, key, end, most);
    return [key, popped.map(([member, score]) => [member, formatScore(score)])];
  }
  return null;
}

/** ZRANDMEMBER key [count [WITHSCORES]] */
function drawMembers(space: Keyspace, [key, count, option, ...more]: readonly string[]): ByteReply {
  const most = count === undefined ? 1n : drawCount(count);
  if (more.length > 0 || (option !== undefined && option.toUpperCase() !== "WITHSCORES")) throw syntaxError();
  const drawn = draw(sorted(space, key!), most, space.random);
  return count === undefined ? (drawn[0]?.[0] ?? null) : list(drawn, option !== undefined);
}

/** The members of a key, ordered by score, then by their bytes. */
export function sorted(space: Keyspace, key: string): Member[] {
  return inOrder(space.value(key, "zset") ?? []);
}

/** Members ordered by score, then by their bytes. */
export function inOrder(members: Iterable<Member>): Member[] {
  return [...members].sort(
    ([leftMember, left], [rightMember, right]) =>
      (left < right ? -1 : left > right ? 1 : 0) || compareBytes(leftMember, rightMember),
  );
}

/** Removes members from a key, and the key when it is empty. Returns how many. */
export function removeMembers(space: Keyspace, key: string, members: readonly Member[]): number {
  const zset = space.value(key, "zset");
  for (const [member] of members) zset?.delete(member);
  space.tidy(key);
  return members.length;
}

/** Members as a reply, with their scores after them if wanted. */
export function list(members: readonly Member[], withScores: boolean): ByteReply {
  return members.flatMap(([member, score]) => (withScores ? [member, formatScore(score)] : [member]));
}
