import { addExtended } from "../lua/extended-float.ts";
import { type Commands, pairs, reads, writes } from "./command.ts";
import type { Keyspace } from "./keyspace.ts";
import { addIntegers, integer, parseInteger } from "./numbers.ts";
import { draw, drawCount, scanCommand } from "./options.ts";
import { type ByteReply, ok, ReplyError, syntaxError } from "./reply.ts";
import { longDouble } from "./string.ts";

/** Commands on hashes. */
export const hashCommands: Commands = {
  HSET: {
    arity: -4,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, ...words]) {
      const fields = pairs("hset", words);
      const hash = space.collection(key!, "hash");
      const before = hash.size;
      for (const [field, value] of fields) hash.set(field, value);
      return hash.size - before;
    },
  },
  HSETNX: {
    arity: 4,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, field, value]) {
      const hash = space.collection(key!, "hash");
      if (hash.has(field!)) return 0;
      hash.set(field!, value!);
      return 1;
    },
  },
  HGET: {
    arity: 3,
    keys: [0, 0, 1],
    run: (space, [key, field]) => space.value(key!, "hash")?.get(field!) ?? null,
  },
  HMGET: {
    arity: -3,
    keys: [0, 0, 1],
    run(space, [key, ...fields]) {
      const hash = space.value(key!, "hash");
      return fields.map((field) => hash?.get(field) ?? null);
    },
  },
  HGETALL: { arity: 2, keys: [0, 0, 1], run: (space, [key]) => read(space, key!).flat() },
  HKEYS: { arity: 2, keys: [0, 0, 1], run: (space, [key]) => read(space, key!).map(([field]) => field) },
  HVALS: { arity: 2, keys: [0, 0, 1], run: (space, [key]) => read(space, key!).map(([, value]) => value) },
  HLEN: { arity: 2, keys: [0, 0, 1], run: (space, [key]) => space.value(key!, "hash")?.size ?? 0 },
  HEXISTS: {
    arity: 3,
    keys: [0, 0, 1],
    run: (space, [key, field]) => (space.value(key!, "hash")?.has(field!) ? 1 : 0),
  },
  HDEL: {
    arity: -3,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, ...fields]) {
      const hash = space.value(key!, "hash");
      const removed = fields.filter((field) => hash?.delete(field)).length;
      space.tidy(key!);
      return removed;
    },
  },
  HMSET: writes(-4, (space, [key, ...words]) => {
    const fields = pairs("hmset", words);
    const hash = space.collection(key!, "hash");
    for (const [field, value] of fields) hash.set(field, value);
    return ok;
  }),
  HSTRLEN: reads(3, (space, [key, field]) => space.value(key!, "hash")?.get(field!)?.length ?? 0),
  HINCRBY: writes(4, increase),
  HINCRBYFLOAT: writes(4, increaseByFloat),
  HRANDFIELD: reads(-2, drawFields),
  HSCAN: scanCommand((space, key) => {
    const hash = space.value(key, "hash");
    return hash && new Map([...hash].map((pair) => [pair[0], pair]));
  }),
};

function increase(space: Keyspace, [key, field, by]: readonly string[]): ByteReply {
  const amount = integer(by!);
  const before = parseInteger(space.value(key!, "hash")?.get(field!) ?? "0");
  if (before === undefined) throw new ReplyError("ERR hash value is not an integer");
  const value = addIntegers(before, amount);
  space.collection(key!, "hash").change(field!, value.toString());
  return Number(value);
}

function increaseByFloat(space: Keyspace, [key, field, by]: readonly string[]): ByteReply {
  const amount = longDouble(by!);
  if (!Number.isFinite(amount)) throw new ReplyError("ERR value is NaN or Infinity");
  const before = space.value(key!, "hash")?.get(field!) ?? "0";
  let sum: number;
  try {
    sum = longDouble(before) + amount;
  } catch (cause) {
    throw new ReplyError("ERR hash value is not a float", { cause });
  }
  if (!Number.isFinite(sum)) throw new ReplyError("ERR increment would produce NaN or Infinity");
  const result = addExtended(before, by!);
  space.collection(key!, "hash").change(field!, result);
  return result;
}

/** HRANDFIELD key [count [WITHVALUES]] */
function drawFields(space: Keyspace, [key, count, option, ...more]: readonly string[]): ByteReply {
  const most = count === undefined ? 1n : drawCount(count);
  if (more.length > 0 || (option !== undefined && option.toUpperCase() !== "WITHVALUES")) throw syntaxError();
  const drawn = draw(read(space, key!), most, space.random);
  if (count === undefined) return drawn[0]?.[0] ?? null;
  return drawn.flatMap(([field, value]) => (option === undefined ? [field] : [field, value]));
}

function read(space: Keyspace, key: string): [field: string, value: string][] {
  return [...(space.value(key, "hash") ?? [])];
}
