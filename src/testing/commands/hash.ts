import { type Commands, pairs } from "./command.ts";
import type { Keyspace } from "./keyspace.ts";
import { addIntegers, integer, parseInteger } from "./numbers.ts";
import { type ByteReply, ReplyError } from "./reply.ts";

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
  HINCRBY: { arity: 4, keys: [0, 0, 1], write: true, run: increase },
};

function increase(space: Keyspace, [key, field, by]: readonly string[]): ByteReply {
  const amount = integer(by!);
  const before = parseInteger(space.value(key!, "hash")?.get(field!) ?? "0");
  if (before === undefined) throw new ReplyError("ERR hash value is not an integer");
  const value = addIntegers(before, amount);
  space.collection(key!, "hash").set(field!, value.toString());
  return Number(value);
}

function read(space: Keyspace, key: string): [field: string, value: string][] {
  return [...(space.value(key, "hash") ?? [])];
}
