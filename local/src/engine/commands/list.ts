import { type Command, type Commands, countedKeys, range, reads, writes } from "./command.ts";
import type { Keyspace } from "./keyspace.ts";
import { index, integer, parseInteger } from "./numbers.ts";
import { atLeastOne, notNegative } from "./options.ts";
import { type ByteReply, ok, ReplyError, syntaxError } from "./reply.ts";

type Side = "LEFT" | "RIGHT";

/** Commands on lists. */
export const listCommands: Commands = {
  LPUSH: writes(-3, (space, [key, ...items]) => push(space.collection(key!, "list"), "LEFT", items)),
  RPUSH: writes(-3, (space, [key, ...items]) => push(space.collection(key!, "list"), "RIGHT", items)),
  LPUSHX: writes(-3, (space, [key, ...items]) => push(space.value(key!, "list"), "LEFT", items)),
  RPUSHX: writes(-3, (space, [key, ...items]) => push(space.value(key!, "list"), "RIGHT", items)),
  LPOP: popCommand("lpop", "LEFT"),
  RPOP: popCommand("rpop", "RIGHT"),
  LMPOP: { arity: -4, keys: countedKeys(0), write: true, run: popFromFirst },
  LLEN: reads(2, (space, [key]) => space.value(key!, "list")?.length ?? 0),
  LINDEX: reads(3, (space, [key, at]) => {
    const list = space.value(key!, "list");
    return list?.at(index(at!)) ?? null;
  }),
  LRANGE: reads(4, (space, [key, start, stop]) => {
    const [from, to] = [index(start!), index(stop!)];
    const list = space.value(key!, "list") ?? [];
    return list.slice(...range(from, to, list.length));
  }),
  LTRIM: writes(4, (space, [key, start, stop]) => {
    const [from, to] = [index(start!), index(stop!)];
    const list = space.value(key!, "list") ?? [];
    list.splice(0, list.length, ...list.slice(...range(from, to, list.length)));
    space.tidy(key!);
    return ok;
  }),
  LSET: writes(4, (space, [key, at, item]) => {
    const list = space.value(key!, "list");
    if (!list) throw new ReplyError("ERR no such key");
    const given = index(at!);
    const position = given < 0 ? list.length + given : given;
    if (!(position in list)) throw new ReplyError("ERR index out of range");
    list[position] = item!;
    return ok;
  }),
  LINSERT: writes(5, insert),
  LREM: writes(4, remove),
  LPOS: reads(-3, find),
  LMOVE: {
    arity: 5,
    keys: [0, 1, 1],
    write: true,
    run: (space, [from, to, taken, put]) => move(space, [from!, readSide(taken!)], [to!, readSide(put!)]),
  },
  RPOPLPUSH: {
    arity: 3,
    keys: [0, 1, 1],
    write: true,
    run: (space, [from, to]) => move(space, [from!, "RIGHT"], [to!, "LEFT"]),
  },
};

/** Returns the length afterwards; 0 if there is no list. */
function push(list: string[] | undefined, side: Side, items: readonly string[]): number {
  if (side === "LEFT") return list?.unshift(...[...items].reverse()) ?? 0;
  return list?.push(...items) ?? 0;
}

function pop(list: string[], side: Side, count: number): string[] {
  if (side === "LEFT") return list.splice(0, count);
  return list.splice(Math.max(0, list.length - count)).reverse();
}

function readSide(word: string): Side {
  const side = word.toUpperCase();
  if (side !== "LEFT" && side !== "RIGHT") throw syntaxError();
  return side;
}

function move(
  space: Keyspace,
  [from, taken]: readonly [string, Side],
  [to, put]: readonly [string, Side],
): ByteReply {
  const source = space.value(from, "list");
  if (!source) return null;
  // Fails before anything is moved, if it has another type.
  space.value(to, "list");
  const [item] = pop(source, taken, 1);
  push(space.collection(to, "list"), put, [item!]);
  space.tidy(from);
  return item!;
}

/** LMPOP numkeys key … LEFT | RIGHT [COUNT count] */
function popFromFirst(space: Keyspace, [count, ...words]: readonly string[]): ByteReply {
  const keyCount = atLeastOne("numkeys", count!);
  const [side, ...options] = words.slice(keyCount);
  if (side === undefined) throw syntaxError();
  const taken = readSide(side);
  const most = readCount(options);
  for (const key of words.slice(0, keyCount)) {
    const list = space.value(key, "list");
    if (!list) continue;
    const items = pop(list, taken, most);
    space.tidy(key);
    return [key, items];
  }
  return null;
}

/** Parses [COUNT count] of LMPOP and ZMPOP. Default 1. */
export function readCount([option, count, ...more]: readonly string[]): number {
  if (option === undefined) return 1;
  if (option.toUpperCase() !== "COUNT" || count === undefined) throw syntaxError();
  const most = atLeastOne("count", count);
  if (more.length > 0) throw syntaxError();
  return most;
}

/** LINSERT key BEFORE | AFTER pivot item */
function insert(space: Keyspace, [key, where, pivot, item]: readonly string[]): ByteReply {
  const place = where!.toUpperCase();
  if (place !== "BEFORE" && place !== "AFTER") throw syntaxError();
  const list = space.value(key!, "list");
  if (!list) return 0;
  const position = list.indexOf(pivot!);
  if (position < 0) return -1;
  list.splice(place === "BEFORE" ? position : position + 1, 0, item!);
  return list.length;
}

/** LREM key count item: removes `count` equal items, counted from the end if it is negative, all if it is 0. */
function remove(space: Keyspace, [key, count, item]: readonly string[]): ByteReply {
  const wanted = index(count!);
  const list = space.value(key!, "list") ?? [];
  const found = list.flatMap((other, position) => (other === item ? [position] : []));
  const chosen = new Set(wanted < 0 ? found.slice(wanted) : found.slice(0, wanted || found.length));
  list.splice(0, list.length, ...list.filter((_, position) => !chosen.has(position)));
  space.tidy(key!);
  return chosen.size;
}

/** LPOS key item [RANK rank] [COUNT count] [MAXLEN length] */
function find(space: Keyspace, [key, item, ...words]: readonly string[]): ByteReply {
  let rank = 1;
  let count: number | undefined;
  let longest = 0;
  for (let position = 0; position < words.length; position += 2) {
    const [option, value] = [words[position]!.toUpperCase(), words[position + 1]];
    if (value === undefined) throw syntaxError();
    if (option === "RANK") rank = readRank(value);
    else if (option === "COUNT") count = notNegative("COUNT", value);
    else if (option === "MAXLEN") longest = notNegative("MAXLEN", value);
    else throw syntaxError();
  }
  const list = space.value(key!, "list");
  if (!list) return count === undefined ? null : [];
  const positions = [...list.keys()];
  if (rank < 0) positions.reverse();
  const found = positions
    .slice(0, longest || positions.length)
    .filter((position) => list[position] === item)
    .slice(Math.abs(rank) - 1);
  if (count === undefined) return found[0] ?? null;
  return found.slice(0, count || found.length);
}

function readRank(word: string): number {
  const rank = integer(word);
  if (rank === 0n) {
    throw new ReplyError(
      "ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... " +
        "or use negative to start from the end of the list",
    );
  }
  return Number(rank);
}

function popCommand(name: string, side: Side): Command {
  return writes(-2, (space, [key, count, ...more]) => {
    if (more.length > 0) throw new ReplyError(`ERR wrong number of arguments for '${name}' command`);
    const wanted = count === undefined ? 1 : positive(count);
    const list = space.value(key!, "list");
    if (!list) return null;
    const items = pop(list, side, wanted);
    space.tidy(key!);
    return count === undefined ? items[0]! : items;
  });
}

/** Parses a count of items to pop. Throws a `ReplyError` unless it is an integer from 0. */
export function positive(count: string): number {
  const value = parseInteger(count);
  if (value === undefined || value < 0n) throw new ReplyError("ERR value is out of range, must be positive");
  return Number(value);
}
