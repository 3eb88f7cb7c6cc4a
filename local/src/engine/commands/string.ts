import { addExtended } from "../lua/extended-float.ts";
import { type Command, type Commands, pairs, range } from "./command.ts";
import { type Deadline, expireOption, readDeadline } from "./deadline.ts";
import type { Keyspace } from "./keyspace.ts";
import { addIntegers, index, integer, parseFloatStrict } from "./numbers.ts";
import { type ByteReply, ok, ReplyError, syntaxError } from "./reply.ts";

const longestString = 512 * 1024 * 1024;

/** Commands on strings. */
export const stringCommands: Commands = {
  GET: { arity: 2, keys: [0, 0, 1], run: (space, [key]) => space.value(key!, "string") ?? null },
  STRLEN: { arity: 2, keys: [0, 0, 1], run: (space, [key]) => space.value(key!, "string")?.length ?? 0 },
  MGET: {
    arity: -2,
    keys: [0, -1, 1],
    run: (space, keys) =>
      keys.map((key) => {
        const entry = space.entry(key);
        return entry?.type === "string" ? entry.value : null;
      }),
  },
  GETRANGE: {
    arity: 4,
    keys: [0, 0, 1],
    run(space, [key, start, stop]) {
      const [from, to] = [index(start!), index(stop!)];
      const value = space.value(key!, "string") ?? "";
      if (from < 0 && to < from) return "";
      // Unlike in a list, an end before the first byte counts as 0, so the range includes the first byte.
      return value.slice(...range(from, Math.max(to, -value.length), value.length));
    },
  },
  SET: setCommand(["NX", "XX"]),
  SETNX: {
    arity: 3,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, value]) {
      if (space.entry(key!)) return 0;
      space.put(key!, "string", value!, undefined);
      return 1;
    },
  },
  SETEX: setWithTtl("setex", "EX"),
  PSETEX: setWithTtl("psetex", "PX"),
  GETSET: {
    arity: 3,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, value]) {
      const before = space.value(key!, "string") ?? null;
      space.put(key!, "string", value!, undefined);
      return before;
    },
  },
  GETDEL: {
    arity: 2,
    keys: [0, 0, 1],
    write: true,
    run(space, [key]) {
      const before = space.value(key!, "string") ?? null;
      space.delete(key!);
      return before;
    },
  },
  GETEX: { arity: -2, keys: [0, 0, 1], write: true, run: getAndExpire },
  MSET: {
    arity: -3,
    keys: [0, -1, 2],
    write: true,
    run(space, words) {
      for (const [key, value] of pairs("mset", words)) space.put(key, "string", value, undefined);
      return ok;
    },
  },
  MSETNX: {
    arity: -3,
    keys: [0, -1, 2],
    write: true,
    run(space, words) {
      const values = pairs("msetnx", words);
      if (values.some(([key]) => space.entry(key))) return 0;
      for (const [key, value] of values) space.put(key, "string", value, undefined);
      return 1;
    },
  },
  INCR: { arity: 2, keys: [0, 0, 1], write: true, run: (space, [key]) => increase(space, key!, 1n) },
  DECR: { arity: 2, keys: [0, 0, 1], write: true, run: (space, [key]) => increase(space, key!, -1n) },
  INCRBY: {
    arity: 3,
    keys: [0, 0, 1],
    write: true,
    run: (space, [key, by]) => increase(space, key!, integer(by!)),
  },
  DECRBY: {
    arity: 3,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, by]) {
      const amount = integer(by!);
      if (amount === -(2n ** 63n)) throw new ReplyError("ERR decrement would overflow");
      return increase(space, key!, -amount);
    },
  },
  INCRBYFLOAT: { arity: 3, keys: [0, 0, 1], write: true, run: increaseByFloat },
  APPEND: {
    arity: 3,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, more]) {
      const value = (space.value(key!, "string") ?? "") + more;
      replace(space, key!, value);
      return value.length;
    },
  },
  SETRANGE: {
    arity: 4,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, at, part]) {
      const offset = index(at!);
      if (offset < 0) throw new ReplyError("ERR offset is out of range");
      const value = space.value(key!, "string") ?? "";
      if (part === "") return value.length;
      if (offset + part!.length > longestString) {
        throw new ReplyError("ERR string exceeds maximum allowed size (proto-max-bulk-len)");
      }
      const head = value.slice(0, offset).padEnd(offset, "\0");
      const result = head + part + value.slice(offset + part!.length);
      replace(space, key!, result);
      return result.length;
    },
  },
};

/** SET with the conditions IFEQ and IFNE. Upstash has them, and Redis from 8.4 on. */
export const setIf: Command = setCommand(["NX", "XX", "IFEQ", "IFNE"]);

function setCommand(conditions: readonly string[]): Command {
  return {
    arity: -3,
    keys: [0, 0, 1],
    write: true,
    run: (space, words) => set(space, words, conditions),
  };
}

interface SetOptions {
  condition?: { readonly kind: string; readonly value: string };
  deadline?: Deadline;
  keepTtl: boolean;
  get: boolean;
}

/** SET key value [NX | XX | IFEQ value | IFNE value] [GET] [EX | PX | EXAT | PXAT time | KEEPTTL] */
function set(
  space: Keyspace,
  [key, value, ...words]: readonly string[],
  conditions: readonly string[],
): ByteReply {
  const { condition, deadline, keepTtl, get } = readSetOptions(words, conditions);
  const until = deadline && readDeadline(space.now, deadline, "set");
  const compares = condition?.kind.startsWith("IF");
  const before = get || compares ? (space.value(key!, "string") ?? null) : null;
  const refused = condition !== undefined && !holds(space, key!, condition, before);
  if (!refused) space.put(key!, "string", value!, keepTtl ? space.entry(key!)?.deadline : until);
  if (get) return before;
  return refused ? null : ok;
}

function readSetOptions(words: readonly string[], conditions: readonly string[]): SetOptions {
  const options: SetOptions = { keepTtl: false, get: false };
  for (let position = 0; position < words.length; position++) {
    const option = words[position]!.toUpperCase();
    const next = words[position + 1];
    if (conditions.includes(option)) {
      if (options.condition !== undefined && options.condition.kind !== option) throw syntaxError();
      const compares = option.startsWith("IF");
      if (compares && next === undefined) throw syntaxError();
      options.condition = { kind: option, value: compares ? next! : "" };
      if (compares) position++;
    } else if (option === "GET") {
      options.get = true;
    } else if (option === "KEEPTTL" && options.deadline === undefined) {
      options.keepTtl = true;
    } else {
      if (options.keepTtl) throw syntaxError();
      options.deadline = expireOption(option, next, options.deadline);
      position++;
    }
  }
  return options;
}

/** Whether a condition of SET holds. `before` is the value of the key, null if it does not exist. */
function holds(
  space: Keyspace,
  key: string,
  { kind, value }: NonNullable<SetOptions["condition"]>,
  before: string | null,
): boolean {
  if (kind === "NX") return space.entry(key) === undefined;
  if (kind === "XX") return space.entry(key) !== undefined;
  return kind === "IFEQ" ? before === value : before !== value;
}

function setWithTtl(name: string, unit: Deadline["unit"]): Command {
  return {
    arity: 4,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, ttl, value]) {
      space.put(key!, "string", value!, readDeadline(space.now, { unit, amount: ttl! }, name));
      return ok;
    },
  };
}

/** GETEX key [EX | PX | EXAT | PXAT time | PERSIST] */
function getAndExpire(space: Keyspace, [key, ...options]: readonly string[]): ByteReply {
  let deadline: Deadline | undefined;
  let persist = false;
  for (let position = 0; position < options.length; position++) {
    const option = options[position]!.toUpperCase();
    if (option === "PERSIST" && deadline === undefined) {
      persist = true;
      continue;
    }
    if (persist) throw syntaxError();
    deadline = expireOption(option, options[++position], deadline);
  }
  const value = space.value(key!, "string");
  if (value === undefined) return null;
  if (deadline !== undefined) space.expire(key!, readDeadline(space.now, deadline, "getex"));
  else if (persist) space.expire(key!, undefined);
  return value;
}

function increase(space: Keyspace, key: string, by: bigint): ByteReply {
  const value = addIntegers(integer(space.value(key, "string") ?? "0"), by);
  replace(space, key, value.toString());
  return Number(value);
}

function increaseByFloat(space: Keyspace, [key, by]: readonly string[]): ByteReply {
  const value = space.value(key!, "string") ?? "0";
  const [left, right] = [longDouble(value), longDouble(by!)];
  if (!Number.isFinite(left + right)) throw new ReplyError("ERR increment would produce NaN or Infinity");
  const result = addExtended(value, by!);
  replace(space, key!, result);
  return result;
}

/** Parses a number that is added by INCRBYFLOAT or HINCRBYFLOAT. Throws a `ReplyError` if it is not one. */
export function longDouble(bytes: string): number {
  const value = parseFloatStrict(bytes);
  // Redis's long double also has hexadecimal numbers and numbers beyond a double. No counter needs them, so they are
  // refused instead of computed wrongly.
  if (value === undefined || /x/i.test(bytes) || (!Number.isFinite(value) && /[0-9]/.test(bytes))) {
    throw new ReplyError("ERR value is not a valid float");
  }
  return value;
}

/** Changes the value of a string and keeps its deadline. */
function replace(space: Keyspace, key: string, value: string): void {
  space.put(key, "string", value, space.entry(key)?.deadline);
}
