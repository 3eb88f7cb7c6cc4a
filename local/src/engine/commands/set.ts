import { type Command, type Commands, countedKeys, reads, writes } from "./command.ts";
import type { Keyspace } from "./keyspace.ts";
import { positive } from "./list.ts";
import { atLeastOne, draw, drawCount, notNegative, scanCommand } from "./options.ts";
import { type ByteReply, ReplyError, syntaxError } from "./reply.ts";

type Combine = (sets: readonly ReadonlySet<string>[]) => Set<string>;

/** Commands on sets. */
export const setCommands: Commands = {
  SADD: writes(-3, (space, [key, ...members]) => {
    const set = space.collection(key!, "set");
    const before = set.size;
    for (const member of members) set.add(member);
    return set.size - before;
  }),
  SREM: writes(-3, (space, [key, ...members]) => {
    const set = space.value(key!, "set");
    const removed = members.filter((member) => set?.delete(member)).length;
    space.tidy(key!);
    return removed;
  }),
  SMEMBERS: reads(2, (space, [key]) => [...members(space, key!)]),
  SCARD: reads(2, (space, [key]) => members(space, key!).size),
  SISMEMBER: reads(3, (space, [key, member]) => (members(space, key!).has(member!) ? 1 : 0)),
  SMISMEMBER: reads(-3, (space, [key, ...words]) => {
    const set = members(space, key!);
    return words.map((member) => (set.has(member) ? 1 : 0));
  }),
  SMOVE: { arity: 4, keys: [0, 1, 1], write: true, run: move },
  SPOP: writes(-2, pop),
  SRANDMEMBER: reads(-2, drawMembers),
  SSCAN: scanCommand((space, key) => {
    const set = space.value(key, "set");
    return set && new Map([...set].map((member) => [member, [member]]));
  }),
  SINTER: combined(intersection),
  SUNION: combined(union),
  SDIFF: combined(difference),
  SINTERSTORE: stored(intersection),
  SUNIONSTORE: stored(union),
  SDIFFSTORE: stored(difference),
  SINTERCARD: { arity: -3, keys: countedKeys(0), run: countIntersection },
};

function members(space: Keyspace, key: string): ReadonlySet<string> {
  return space.value(key, "set") ?? new Set();
}

function move(space: Keyspace, [from, to, member]: readonly string[]): ByteReply {
  const source = space.value(from!, "set");
  if (!source) return 0;
  const target = space.value(to!, "set");
  if (source === target) return source.has(member!) ? 1 : 0;
  if (!source.delete(member!)) return 0;
  space.tidy(from!);
  space.collection(to!, "set").add(member!);
  return 1;
}

function pop(space: Keyspace, [key, count, ...more]: readonly string[]): ByteReply {
  if (more.length > 0) throw syntaxError();
  const most = count === undefined ? 1 : positive(count);
  const set = space.value(key!, "set");
  const popped = draw([...(set ?? [])], BigInt(most), space.random);
  for (const member of popped) set?.delete(member);
  space.tidy(key!);
  return count === undefined ? (popped[0] ?? null) : popped;
}

function drawMembers(space: Keyspace, [key, count, ...more]: readonly string[]): ByteReply {
  if (more.length > 0) throw syntaxError();
  const most = count === undefined ? 1n : drawCount(count);
  const drawn = draw([...members(space, key!)], most, space.random);
  return count === undefined ? (drawn[0] ?? null) : drawn;
}

function intersection([first, ...others]: readonly ReadonlySet<string>[]): Set<string> {
  return new Set([...first!].filter((member) => others.every((other) => other.has(member))));
}

function union(sets: readonly ReadonlySet<string>[]): Set<string> {
  return new Set(sets.flatMap((set) => [...set]));
}

function difference([first, ...others]: readonly ReadonlySet<string>[]): Set<string> {
  return new Set([...first!].filter((member) => !others.some((other) => other.has(member))));
}

function combined(combine: Combine): Command {
  return {
    arity: -2,
    keys: [0, -1, 1],
    run: (space, keys) => [...combine(keys.map((key) => members(space, key)))],
  };
}

function stored(combine: Combine): Command {
  return {
    arity: -3,
    keys: [0, -1, 1],
    write: true,
    run: (space, [to, ...keys]) => space.store(to!, "set", combine(keys.map((key) => members(space, key)))),
  };
}

/** SINTERCARD numkeys key … [LIMIT limit] */
function countIntersection(space: Keyspace, [count, ...words]: readonly string[]): ByteReply {
  const keyCount = atLeastOne("numkeys", count!);
  if (keyCount > words.length) {
    throw new ReplyError("ERR Number of keys can't be greater than number of args");
  }
  let limit = 0;
  for (let position = keyCount; position < words.length; position += 2) {
    const value = words[position + 1];
    if (words[position]!.toUpperCase() !== "LIMIT" || value === undefined) throw syntaxError();
    limit = notNegative("LIMIT", value);
  }
  const { size } = intersection(words.slice(0, keyCount).map((key) => members(space, key)));
  return limit === 0 ? size : Math.min(limit, size);
}
