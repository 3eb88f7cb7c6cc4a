import { type Command, type Commands, pairs, reads, writes } from "./command.ts";
import { type Deadline, expireOption, mayExpire, readDeadline, readExpiry } from "./deadline.ts";
import type { Hash } from "./hash-value.ts";
import type { Keyspace } from "./keyspace.ts";
import { integer, parseInteger } from "./numbers.ts";
import { type ByteReply, ReplyError, syntaxError } from "./reply.ts";

/** Commands on the expiry of single fields. Upstash has them, and Redis from 7.4 and 8.0 on. */
export const hashExpiryCommands: Commands = {
  HEXPIRE: expireCommand("hexpire", "EX"),
  HPEXPIRE: expireCommand("hpexpire", "PX"),
  HEXPIREAT: expireCommand("hexpireat", "EXAT"),
  HPEXPIREAT: expireCommand("hpexpireat", "PXAT"),
  HTTL: ttlCommand((deadline, now) => Math.ceil((deadline - now) / 1000)),
  HPTTL: ttlCommand((deadline, now) => deadline - now),
  HEXPIRETIME: ttlCommand((deadline) => Math.ceil(deadline / 1000)),
  HPEXPIRETIME: ttlCommand((deadline) => deadline),
  HPERSIST: writes(-5, (space, words) =>
    ofEach(space, words, (hash, field) => {
      if (hash.deadline(field) === undefined) return -1;
      hash.expire(field, undefined);
      return 1;
    }),
  ),
  HGETDEL: writes(-5, (space, [key, ...words]) => {
    const fields = readFields(words);
    const hash = space.value(key!, "hash");
    const values = fields.map((field) => {
      const value = hash?.get(field) ?? null;
      hash?.delete(field);
      return value;
    });
    space.tidy(key!);
    return values;
  }),
  HGETEX: writes(-5, getAndExpire),
  HSETEX: writes(-6, setAndExpire),
};

/** FIELDS count field …, with `size` words for each field. */
function readFields([name, count, ...words]: readonly string[], size = 1): readonly string[] {
  if (name?.toUpperCase() !== "FIELDS") {
    throw new ReplyError("ERR Mandatory argument FIELDS is missing or not at the right position");
  }
  const fields = parseInteger(count ?? "");
  if (fields === undefined || fields < 1n) {
    throw new ReplyError("ERR Number of fields must be a positive integer");
  }
  if (Number(fields) * size !== words.length) {
    throw new ReplyError("ERR The `numfields` parameter must match the number of arguments");
  }
  return words;
}

/** What a command answers for each field; -2 for one that does not exist. */
function ofEach(
  space: Keyspace,
  [key, ...words]: readonly string[],
  answer: (hash: Hash, field: string) => ByteReply,
): ByteReply {
  const fields = readFields(words);
  const hash = space.value(key!, "hash");
  return fields.map((field) => (hash?.has(field) ? answer(hash, field) : -2));
}

function ttlCommand(read: (deadline: number, now: number) => number): Command {
  return reads(-5, (space, words) =>
    ofEach(space, words, (hash, field) => {
      const deadline = hash.deadline(field);
      return deadline === undefined ? -1 : read(deadline, space.now);
    }),
  );
}

/** HEXPIRE key time [NX | XX | GT | LT] FIELDS count field … */
function expireCommand(name: string, unit: Deadline["unit"]): Command {
  return writes(-6, (space, [key, amount, ...words]) => {
    if (integer(amount!) < 0n) throw new ReplyError("ERR invalid expire time, must be >= 0");
    const until = readExpiry(space.now, { unit, amount: amount! }, name);
    const conditions = new Set<string>();
    if (/^(?:nx|xx|gt|lt)$/i.test(words[0]!)) conditions.add(words[0]!.toUpperCase());
    const answers = ofEach(space, [key!, ...words.slice(conditions.size)], (hash, field) => {
      if (!mayExpire(conditions, hash.deadline(field), until)) return 0;
      hash.expire(field, until);
      return until <= space.now ? 2 : 1;
    });
    // A deadline in the past has deleted the field, and the key if there was no other.
    space.entry(key!);
    return answers;
  });
}

/** HGETEX key [EX | PX | EXAT | PXAT time | PERSIST] FIELDS count field … */
function getAndExpire(space: Keyspace, [key, ...words]: readonly string[]): ByteReply {
  const { rest, deadline, keyword } = readOptions(words, ["PERSIST"]);
  const fields = readFields(rest);
  const until = deadline && readDeadline(space.now, deadline, "hgetex");
  const hash = space.value(key!, "hash");
  const values = fields.map((field) => hash?.get(field) ?? null);
  for (const field of fields) {
    if (hash?.has(field) && (until !== undefined || keyword !== undefined)) hash.expire(field, until);
  }
  space.entry(key!);
  return values;
}

/** HSETEX key [FNX | FXX] [EX | PX | EXAT | PXAT time | KEEPTTL] FIELDS count field value … */
function setAndExpire(space: Keyspace, [key, ...words]: readonly string[]): ByteReply {
  const condition = /^f(nx|xx)$/i.exec(words[0]!)?.[1]?.toUpperCase();
  const { rest, deadline, keyword } = readOptions(words.slice(condition ? 1 : 0), ["KEEPTTL"]);
  const fields = pairs("hsetex", readFields(rest, 2));
  const until = deadline && readDeadline(space.now, deadline, "hsetex");
  const before = space.value(key!, "hash");
  const refuses = ([field]: [string, string]) => (before?.has(field) ?? false) === (condition === "NX");
  if (condition && fields.some(refuses)) return 0;
  const hash = space.collection(key!, "hash");
  for (const [field, value] of fields) {
    if (keyword) hash.change(field, value);
    else hash.set(field, value);
    if (until !== undefined) hash.expire(field, until);
  }
  space.entry(key!);
  return 1;
}

/** An expiry option, or one of some keywords instead, before FIELDS. */
function readOptions(words: readonly string[], keywords: readonly string[]) {
  const option = words[0]!.toUpperCase();
  if (option === "FIELDS") return { rest: words };
  if (keywords.includes(option)) return { rest: words.slice(1), keyword: option };
  if (!/^(?:ex|px)(?:at)?$/i.test(option)) throw syntaxError();
  return { rest: words.slice(2), deadline: expireOption(option, words[1]) };
}
