import { type Command, type Commands, range } from "./command.ts";
import type { Keyspace } from "./keyspace.ts";
import { index, parseInteger } from "./numbers.ts";
import { type ByteReply, ok, ReplyError } from "./reply.ts";

/** Commands on lists. */
export const listCommands: Commands = {
  LPUSH: {
    arity: -3,
    keys: [0, 0, 1],
    write: true,
    run: (space, [key, ...items]) => space.collection(key!, "list").unshift(...items.reverse()),
  },
  RPUSH: {
    arity: -3,
    keys: [0, 0, 1],
    write: true,
    run: (space, [key, ...items]) => space.collection(key!, "list").push(...items),
  },
  LPOP: popCommand("lpop", (list, count) => list.splice(0, count)),
  RPOP: popCommand("rpop", (list, count) => list.splice(Math.max(0, list.length - count)).reverse()),
  LLEN: { arity: 2, keys: [0, 0, 1], run: (space, [key]) => space.value(key!, "list")?.length ?? 0 },
  LINDEX: {
    arity: 3,
    keys: [0, 0, 1],
    run: (space, [key, at]) => {
      const list = space.value(key!, "list");
      return list?.at(index(at!)) ?? null;
    },
  },
  LRANGE: {
    arity: 4,
    keys: [0, 0, 1],
    run(space, [key, start, stop]) {
      const [from, to] = [index(start!), index(stop!)];
      const list = space.value(key!, "list") ?? [];
      return list.slice(...range(from, to, list.length));
    },
  },
  LTRIM: {
    arity: 4,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, start, stop]) {
      const [from, to] = [index(start!), index(stop!)];
      const list = space.value(key!, "list") ?? [];
      list.splice(0, list.length, ...list.slice(...range(from, to, list.length)));
      space.tidy(key!);
      return ok;
    },
  },
  LREM: { arity: 4, keys: [0, 0, 1], write: true, run: remove },
};

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

function popCommand(name: string, pop: (list: string[], count: number) => string[]): Command {
  return {
    arity: -2,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, count, ...more]) {
      if (more.length > 0) throw new ReplyError(`ERR wrong number of arguments for '${name}' command`);
      const wanted = count === undefined ? 1 : positive(count);
      const list = space.value(key!, "list");
      if (!list) return null;
      const items = pop(list, wanted);
      space.tidy(key!);
      return count === undefined ? items[0]! : items;
    },
  };
}

/** Parses a count of items to pop. Throws a `ReplyError` unless it is an integer from 0. */
export function positive(count: string): number {
  const value = parseInteger(count);
  if (value === undefined || value < 0n) throw new ReplyError("ERR value is out of range, must be positive");
  return Number(value);
}
