import { type Commands, reads, writes, wrongNumberOfArguments } from "./command.ts";
import type { Keyspace } from "./keyspace.ts";
import { index, parseInteger } from "./numbers.ts";
import { type ByteReply, ReplyError, syntaxError } from "./reply.ts";
import { greatestId, idOf, mostOfPart, parseId, partsOf, printId } from "./stream-id.ts";
import { type Entry, newStream, type Stream } from "./stream-value.ts";

/** Commands on streams without their groups. */
export const streamCommands: Commands = {
  XADD: writes(-5, add),
  XLEN: reads(2, (space, [key]) => space.value(key!, "stream")?.entries.length ?? 0),
  XRANGE: reads(-4, (space, words) => select(space, words, false)),
  XREVRANGE: reads(-4, (space, words) => select(space, words, true)),
  XDEL: writes(-3, (space, [key, ...words]) => {
    const stream = space.value(key!, "stream");
    return stream ? drop(stream, new Set(words.map((word) => parseId(word)))) : 0;
  }),
  XTRIM: writes(-4, (space, [key, ...words]) => {
    const { trim, rest } = readOptions(words, false);
    if (rest.length > 0 || !trim) throw syntaxError();
    const stream = space.value(key!, "stream");
    return stream ? trim(stream) : 0;
  }),
  XREAD: { arity: -4, keys: streamKeys, run: read },
};

/** XADD key [NOMKSTREAM] [MAXLEN | MINID [= | ~] threshold [LIMIT count]] * | id field value … */
function add(space: Keyspace, [key, ...words]: readonly string[]): ByteReply {
  const { creates, trim, rest } = readOptions(words, true);
  const [id, ...fields] = rest;
  if (id === undefined) throw wrongNumberOfArguments("xadd");
  const chooseId = readNewId(id);
  if (fields.length < 2 || fields.length % 2 !== 0) throw wrongNumberOfArguments("xadd");
  if (!id.includes("*") && parseId(id) === 0n) {
    throw new ReplyError("ERR The ID specified in XADD must be greater than 0-0");
  }
  const found = space.value(key!, "stream");
  if (!found && !creates) return null;
  const stream = found ?? newStream();
  if (stream.lastId === greatestId) {
    throw new ReplyError("ERR The stream has exhausted the last possible ID, unable to add more items");
  }
  const added = chooseId(stream.lastId, BigInt(space.now));
  if (added <= stream.lastId) {
    throw new ReplyError("ERR The ID specified in XADD is equal or smaller than the target stream top item");
  }
  if (!found) space.put(key!, "stream", stream, undefined);
  stream.entries.push({ id: added, fields });
  stream.lastId = added;
  stream.added++;
  trim?.(stream);
  return printId(added);
}

type ChooseId = (last: bigint, now: bigint) => bigint;

/** Parses the ID of a new entry: `*`, `<ms>-*`, or a whole one. */
function readNewId(word: string): ChooseId {
  if (word === "*") {
    return (last, now) => (now > partsOf(last)[0] ? idOf(now, 0n) : last + 1n);
  }
  if (word.endsWith("-*")) {
    const [ms] = partsOf(parseId(word.slice(0, -2)));
    return (last) => (ms === partsOf(last)[0] ? last + 1n : idOf(ms, 0n));
  }
  const id = parseId(word);
  return () => id;
}

interface Options {
  readonly creates: boolean;
  /** Returns how many entries it has removed. */
  readonly trim: ((stream: Stream) => number) | undefined;
  /** The words after the options. */
  readonly rest: readonly string[];
}

/** [NOMKSTREAM] [MAXLEN | MINID [= | ~] threshold [LIMIT count]], the options of XADD and XTRIM. */
function readOptions(words: readonly string[], forAdd: boolean): Options {
  let creates = true;
  let rule: { readonly option: string; readonly threshold: string; readonly loose: boolean } | undefined;
  let limit: number | undefined;
  let position = 0;
  for (; position < words.length; position++) {
    const option = words[position]!.toUpperCase();
    if (option === "NOMKSTREAM" && forAdd) {
      creates = false;
    } else if ((option === "MAXLEN" || option === "MINID") && position + 1 < words.length) {
      // Redis says this of a repeated one as well.
      if (rule) {
        throw new ReplyError(
          "ERR syntax error, MAXLEN and MINID options at the same time are not compatible",
        );
      }
      const sign = /^[=~]$/.test(words[position + 1]!) ? words[++position] : "=";
      const threshold = words[++position];
      if (threshold === undefined) throw syntaxError();
      checkThreshold(option, threshold);
      rule = { option, threshold, loose: sign === "~" };
    } else if (option === "LIMIT" && position + 1 < words.length) {
      limit = index(words[++position]!);
      if (limit < 0) throw new ReplyError("ERR The LIMIT argument must be >= 0.");
    } else if (forAdd) {
      // Redis finds a wrong ID before a wrong combination of options.
      readNewId(words[position]!);
      break;
    } else {
      throw syntaxError();
    }
  }
  if (limit && !rule) {
    throw new ReplyError("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy");
  }
  if (limit && !rule?.loose) {
    throw new ReplyError("ERR syntax error, LIMIT cannot be used without the special ~ option");
  }
  const trim = rule && trimmer(rule.option, rule.threshold, limit || Number.POSITIVE_INFINITY);
  return { creates, trim, rest: words.slice(position) };
}

function checkThreshold(option: string, threshold: string): void {
  if (option === "MINID") parseId(threshold);
  else if (index(threshold) < 0) throw new ReplyError("ERR The MAXLEN argument must be >= 0.");
}

/** Removes the oldest entries, exactly as many as it may: what `~` allows, Redis need not do. */
function trimmer(option: string, threshold: string, limit: number): (stream: Stream) => number {
  return ({ entries }) => {
    const kept =
      option === "MAXLEN"
        ? entries.length - index(threshold)
        : entries.filter(({ id }) => id < parseId(threshold)).length;
    return entries.splice(0, Math.max(0, Math.min(kept, limit))).length;
  };
}

/** Removes entries by their IDs. Returns how many there were. */
export function drop(stream: Stream, ids: ReadonlySet<bigint>): number {
  const before = stream.entries.length;
  for (const { id } of stream.entries) {
    if (ids.has(id) && id > stream.mostDeleted) stream.mostDeleted = id;
  }
  stream.entries = stream.entries.filter(({ id }) => !ids.has(id));
  return before - stream.entries.length;
}

/** XRANGE key start end [COUNT count], XREVRANGE key end start [COUNT count] */
function select(space: Keyspace, [key, ...words]: readonly string[], reverse: boolean): ByteReply {
  const [start, end] = reverse ? [words[1]!, words[0]!] : [words[0]!, words[1]!];
  const from = readStart(start);
  const to = readEnd(end);
  let count: number | undefined;
  for (let position = 2; position < words.length; position += 2) {
    const value = words[position + 1];
    if (words[position]!.toUpperCase() !== "COUNT" || value === undefined) throw syntaxError();
    count = Math.max(0, index(value));
  }
  const stream = space.value(key!, "stream");
  if (!stream) return [];
  if (count === 0) return null;
  const found = stream.entries.filter(({ id }) => id >= from && id <= to);
  if (reverse) found.reverse();
  return found.slice(0, count).map(entryReply);
}

/** Parses the start of an interval: `-`, an ID, or `(` and an ID that is not part of it. */
export function readStart(word: string): bigint {
  if (word === "-") return 0n;
  if (word === "+") return greatestId;
  if (!word.startsWith("(")) return parseId(word);
  const id = parseId(word.slice(1));
  if (id === greatestId) throw new ReplyError("ERR invalid start ID for the interval");
  return id + 1n;
}

/** Parses the end of an interval. */
export function readEnd(word: string): bigint {
  if (word === "-") return 0n;
  if (word === "+") return greatestId;
  if (!word.startsWith("(")) return parseId(word, mostOfPart);
  const id = parseId(word.slice(1), mostOfPart);
  if (id === 0n) throw new ReplyError("ERR invalid end ID for the interval");
  return id - 1n;
}

/** An entry as Redis replies it: its ID and its fields. */
export function entryReply({ id, fields }: Entry): ByteReply {
  return [printId(id), fields];
}

/** The keys of XREAD and XREADGROUP: the first half of the words after STREAMS. */
export function streamKeys(words: readonly string[]): readonly string[] {
  const streams = words.slice(words.findIndex((word) => word.toUpperCase() === "STREAMS") + 1);
  return streams.slice(0, streams.length / 2);
}

/** XREAD [COUNT count] [BLOCK ms] STREAMS key … id …. It never blocks, as in a script. */
function read(space: Keyspace, words: readonly string[]): ByteReply {
  const { count, streams } = readStreams("XREAD", words);
  const found = streams.flatMap(([key, id]) => {
    const stream = space.value(key, "stream");
    const after = id === "$" ? stream?.lastId : parseId(id);
    const entries = stream?.entries.filter((entry) => entry.id > after!).slice(0, count) ?? [];
    return entries.length > 0 ? [[key, entries.map(entryReply)]] : [];
  });
  return found.length > 0 ? found : null;
}

/** What XREAD and XREADGROUP read. */
export interface ReadRequest {
  readonly count: number | undefined;
  /** Whether what is read counts as acknowledged. */
  readonly noAck: boolean;
  readonly group: readonly [group: string, consumer: string] | undefined;
  readonly streams: readonly (readonly [key: string, id: string])[];
}

/** Parses the arguments of XREAD or XREADGROUP. */
export function readStreams(name: "XREAD" | "XREADGROUP", words: readonly string[]): ReadRequest {
  let count: number | undefined;
  let noAck = false;
  let group: ReadRequest["group"];
  for (let position = 0; position < words.length; position++) {
    const option = words[position]!.toUpperCase();
    const left = words.length - position - 1;
    if (option === "BLOCK" && left > 0) {
      if (parseInteger(words[++position]!) === undefined) {
        throw new ReplyError("ERR timeout is not an integer or out of range");
      }
    } else if (option === "COUNT" && left > 0) {
      count = Math.max(0, index(words[++position]!)) || undefined;
    } else if (option === "GROUP" && left > 1 && name === "XREADGROUP") {
      group = [words[++position]!, words[++position]!];
    } else if (option === "NOACK" && name === "XREADGROUP") {
      noAck = true;
    } else if (option === "STREAMS" && left > 0) {
      return { count, noAck, group, streams: keysAndIds(name, words.slice(position + 1)) };
    } else {
      throw syntaxError();
    }
  }
  throw syntaxError();
}

function keysAndIds(name: string, words: readonly string[]): (readonly [string, string])[] {
  if (words.length % 2 !== 0) {
    throw new ReplyError(
      `ERR Unbalanced ${name} list of streams: for each stream key an ID or '$' must be specified.`,
    );
  }
  const half = words.length / 2;
  return words.slice(0, half).map((key, position) => [key, words[half + position]!]);
}
