import { type Command, type Commands, reads, writes, wrongNumberOfArguments } from "./command.ts";
import { type Deadline, mayExpire, readExpiry } from "./deadline.ts";
import { globMatcher } from "./glob.ts";
import type { Keyspace } from "./keyspace.ts";
import { integer } from "./numbers.ts";
import { checkCursor, scanOptions } from "./options.ts";
import { type ByteReply, ok, ReplyError, Status, syntaxError } from "./reply.ts";

/** Commands on keys of any type, and on the whole database. */
export const keyCommands: Commands = {
  DEL: { arity: -2, keys: [0, -1, 1], write: true, run: remove },
  UNLINK: { arity: -2, keys: [0, -1, 1], write: true, run: remove },
  EXISTS: { arity: -2, keys: [0, -1, 1], run: countKeys },
  TOUCH: { arity: -2, keys: [0, -1, 1], run: countKeys },
  TYPE: reads(2, (space, [key]) => new Status(space.entry(key!)?.type ?? "none")),
  EXPIRE: expireCommand("expire", "EX"),
  PEXPIRE: expireCommand("pexpire", "PX"),
  EXPIREAT: expireCommand("expireat", "EXAT"),
  PEXPIREAT: expireCommand("pexpireat", "PXAT"),
  TTL: ttlCommand((deadline, now) => Math.floor((deadline - now + 500) / 1000)),
  PTTL: ttlCommand((deadline, now) => deadline - now),
  EXPIRETIME: ttlCommand((deadline) => Math.floor((deadline + 500) / 1000)),
  PEXPIRETIME: ttlCommand((deadline) => deadline),
  PERSIST: writes(2, (space, [key]) => {
    if (space.entry(key!)?.deadline === undefined) return 0;
    space.expire(key!, undefined);
    return 1;
  }),
  RENAME: renameCommand(true),
  RENAMENX: renameCommand(false),
  COPY: { arity: -3, keys: [0, 1, 1], write: true, run: (space, words) => copy(space, words, true) },
  RANDOMKEY: {
    arity: 1,
    wholeDatabase: true,
    run(space) {
      const keys = space.keys();
      return keys[Math.floor(space.random() * keys.length)] ?? null;
    },
  },
  KEYS: {
    arity: 2,
    wholeDatabase: true,
    run(space, [pattern]) {
      const matches = globMatcher(pattern!);
      return space.keys().filter(matches);
    },
  },
  SCAN: { arity: -2, wholeDatabase: true, run: (space, words) => scan(space, words, false) },
  DBSIZE: { arity: 1, wholeDatabase: true, run: (space) => space.keys().length },
  FLUSHDB: { arity: -1, write: true, wholeDatabase: true, run: flush },
  FLUSHALL: { arity: -1, write: true, wholeDatabase: true, run: flush },
};

function countKeys(space: Keyspace, keys: readonly string[]): ByteReply {
  return keys.filter((key) => space.entry(key)).length;
}

function renameCommand(replaces: boolean): Command {
  return {
    arity: 3,
    keys: [0, 1, 1],
    write: true,
    run(space, [from, to]) {
      const entry = space.entry(from!);
      if (!entry) throw new ReplyError("ERR no such key");
      if (!replaces && space.entry(to!)) return 0;
      if (from !== to) {
        space.delete(from!);
        space.put(to!, entry.type, entry.value, entry.deadline);
      }
      return replaces ? ok : 1;
    },
  };
}

/** COPY from to [DB 0] [REPLACE] */
function copy(space: Keyspace, [from, to, ...words]: readonly string[], refusesSame: boolean): ByteReply {
  let replaces = false;
  for (let position = 0; position < words.length; position++) {
    const option = words[position]!.toUpperCase();
    if (option === "REPLACE") {
      replaces = true;
    } else if (option === "DB" && words[position + 1] !== undefined) {
      if (integer(words[++position]!) !== 0n) throw new ReplyError("ERR DB index is out of range");
    } else {
      throw syntaxError();
    }
  }
  if (from === to && refusesSame) throw new ReplyError("ERR source and destination objects are the same");
  const entry = space.entry(from!);
  if (from === to || !entry || (!replaces && space.entry(to!))) return 0;
  space.delete(to!);
  space.put(
    to!,
    entry.type,
    entry.type === "hash" ? entry.value.copy() : structuredClone(entry.value),
    entry.deadline,
  );
  return 1;
}

function remove(space: Keyspace, keys: readonly string[]): ByteReply {
  return keys.filter((key) => space.delete(key)).length;
}

/** DELEX key [IFEQ value | IFNE value]: deletes a key if its value is, or is not, the given one. */
function deleteOnCondition(space: Keyspace, [key, option, value, ...more]: readonly string[]): ByteReply {
  if (option === undefined) return space.delete(key!) ? 1 : 0;
  if (value === undefined || more.length > 0) throw wrongNumberOfArguments("delex");
  const condition = option.toUpperCase();
  if (condition !== "IFEQ" && condition !== "IFNE") throw syntaxError();
  const entry = space.entry(key!);
  if (entry === undefined) return 0;
  if (entry.type !== "string") {
    throw new ReplyError("ERR Key should be of string type if conditions are specified");
  }
  return (entry.value === value) === (condition === "IFEQ") && space.delete(key!) ? 1 : 0;
}

function expireCommand(name: string, unit: Deadline["unit"]): Command {
  return {
    arity: -3,
    keys: [0, 0, 1],
    write: true,
    run(space, [key, amount, ...words]) {
      const options = new Set(words.map((word) => word.toUpperCase()));
      for (const word of words) {
        if (!["NX", "XX", "GT", "LT"].includes(word.toUpperCase())) {
          throw new ReplyError(`ERR Unsupported option ${word}`);
        }
      }
      if (options.has("NX") && options.size > 1) {
        throw new ReplyError("ERR NX and XX, GT or LT options at the same time are not compatible");
      }
      if (options.has("GT") && options.has("LT")) {
        throw new ReplyError("ERR GT and LT options at the same time are not compatible");
      }
      const until = readExpiry(space.now, { unit, amount: amount! }, name);
      const entry = space.entry(key!);
      if (!entry) return 0;
      if (!mayExpire(options, entry.deadline, until)) return 0;
      space.expire(key!, until);
      return 1;
    },
  };
}

function ttlCommand(read: (deadline: number, now: number) => number): Command {
  return {
    arity: 2,
    keys: [0, 0, 1],
    run(space, [key]) {
      const entry = space.entry(key!);
      if (!entry) return -2;
      return entry.deadline === undefined ? -1 : read(entry.deadline, space.now);
    },
  };
}

/** SCAN cursor [MATCH pattern] [COUNT count] [TYPE type] */
function scan(space: Keyspace, [cursor, ...options]: readonly string[], withTypes: boolean): ByteReply {
  checkCursor(cursor!);
  const { matches, count, type } = scanOptions(options, true);
  // The cursor is the serial number of the last key returned. So a key that exists from the first call to the last is
  // returned exactly once, whatever is written in between.
  const entries = space.keys().flatMap((key) => {
    const entry = space.entry(key)!;
    return entry.serial > Number(cursor) ? [{ key, type: entry.type, serial: entry.serial }] : [];
  });
  const page = entries.slice(0, count);
  const next = entries.length > count ? page.at(-1)!.serial : 0;
  const found = page.filter((entry) => matches(entry.key) && (type === undefined || entry.type === type));
  return [String(next), found.flatMap((entry) => (withTypes ? [entry.key, entry.type] : [entry.key]))];
}

/** DELEX. Upstash has it, and Redis from 8.4 on. */
export const deleteIf: Command = { arity: -2, keys: [0, 0, 1], write: true, run: deleteOnCondition };

/** Commands on keys that Upstash answers otherwise than Redis. */
export const upstashKeyCommands: Commands = {
  // To copy a key to itself is not an error, and copies nothing.
  COPY: {
    arity: -3,
    keys: [0, 1, 1],
    write: true,
    run: (space, words) => copy(space, words, false),
  },
  // With WITHTYPE, every key is followed by its type.
  SCAN: {
    arity: -2,
    wholeDatabase: true,
    run(space, words) {
      const at = words.findIndex((word, position) => position % 2 === 1 && /^withtype$/i.test(word));
      return scan(space, at < 0 ? words : [...words.slice(0, at), ...words.slice(at + 1)], at >= 0);
    },
  },
};

function flush(space: Keyspace, words: readonly string[]): ByteReply {
  if (words.length > 1 || (words.length === 1 && !/^a?sync$/i.test(words[0]!))) throw syntaxError();
  space.clear();
  return ok;
}
