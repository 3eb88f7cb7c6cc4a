import { type Commands, writes } from "./command.ts";
import type { Keyspace } from "./keyspace.ts";
import { index, parseInteger } from "./numbers.ts";
import { type ByteReply, ReplyError, syntaxError } from "./reply.ts";
import { entryReply, readEnd, readStart, readStreams, streamKeys } from "./stream.ts";
import { parseId, printId } from "./stream-id.ts";
import { countUpTo, type Entry, type Group, hasGaps, type Pending, type Stream } from "./stream-value.ts";

/** Commands on the entries that consumer groups read. */
export const streamGroupCommands: Commands = {
  XREADGROUP: { arity: -7, keys: streamKeys, write: true, run: readGroup },
  XACK: writes(-4, (space, [key, name, ...words]) => {
    const group = space.value(key!, "stream")?.groups.get(name!);
    // Redis does not look at the IDs of a missing group.
    return group ? words.map((word) => parseId(word)).filter((id) => group.pending.delete(id)).length : 0;
  }),
  XPENDING: writes(-3, (space, [key, name, ...words]) => {
    const { group } = find(space, key!, name!);
    return words.length === 0 ? summary(group) : pendingDetails(group, words, space.now);
  }),
  XCLAIM: writes(-6, claim),
  XAUTOCLAIM: writes(-6, autoClaim),
};

/** The stream and the group of a command. Throws a `ReplyError` if one is missing. */
function find(
  space: Keyspace,
  key: string,
  name: string,
  where = "",
): { readonly stream: Stream; readonly group: Group } {
  const stream = space.value(key, "stream");
  const group = stream?.groups.get(name);
  if (!stream || !group) {
    throw new ReplyError(`NOGROUP No such key '${key}' or consumer group '${name}'${where}`);
  }
  return { stream, group };
}

/** XREADGROUP GROUP group consumer [COUNT count] [NOACK] STREAMS key … id … */
function readGroup(space: Keyspace, words: readonly string[]): ByteReply {
  const { count, noAck, group: given, streams } = readStreams("XREADGROUP", words);
  if (!given) throw new ReplyError("ERR Missing GROUP option for XREADGROUP");
  const [name, consumer] = given;
  const found = streams.map(([key, id]) => {
    const target = find(space, key, name, " in XREADGROUP with GROUP option");
    checkReadId(id);
    return target;
  });
  const read = found.flatMap(({ stream, group }, position) => {
    const [key, id] = streams[position]!;
    if (id !== ">") {
      group.consumers.set(consumer, space.now);
      const after = parseId(id);
      const own = inOrder(group).filter((each) => each[0] > after && each[1].consumer === consumer);
      return [[key, own.slice(0, count).map((each) => deliverAgain(stream, each))]];
    }
    const entries = stream.entries.filter((entry) => entry.id > group.lastId).slice(0, count);
    if (entries.length > 0) group.consumers.set(consumer, space.now);
    deliver(stream, group, entries);
    if (!noAck) {
      for (const entry of entries) group.pending.set(entry.id, { consumer, time: space.now, count: 1 });
    }
    return entries.length > 0 ? [[key, entries.map(entryReply)]] : [];
  });
  return read.length > 0 ? read : null;
}

function checkReadId(id: string): void {
  if (id === ">") return;
  if (id !== "$") {
    parseId(id);
    return;
  }
  throw new ReplyError(
    "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this " +
      "consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just " +
      "return an empty result set.",
  );
}

/** Moves a group on behind the entries that one of its consumers gets. */
function deliver(stream: Stream, group: Group, entries: readonly Entry[]): void {
  for (const { id } of entries) {
    if (group.read !== undefined && !hasGaps(stream, id)) group.read++;
    else group.read = countUpTo(stream, id);
    group.lastId = id;
  }
}

/** An entry that its consumer has not acknowledged. One that was deleted since has no fields. */
function deliverAgain(stream: Stream, [id, pending]: readonly [bigint, Pending]): ByteReply {
  pending.count++;
  const entry = stream.entries.find((each) => each.id === id);
  return entry ? entryReply(entry) : [printId(id), null];
}

/** The pending entries of a group, in the order of their IDs. */
function inOrder({ pending }: Group): [id: bigint, pending: Pending][] {
  return [...pending].sort(([left], [right]) => (left < right ? -1 : 1));
}

/** XPENDING key group */
function summary(group: Group): ByteReply {
  const pending = inOrder(group);
  const [first, last] = [pending[0], pending.at(-1)];
  if (!first || !last) return [0, null, null, null];
  const counts = new Map<string, number>();
  for (const [, { consumer }] of pending) counts.set(consumer, (counts.get(consumer) ?? 0) + 1);
  const consumers = [...counts].sort(([left], [right]) => (left < right ? -1 : 1));
  const byConsumer = consumers.map(([consumer, count]) => [consumer, String(count)]);
  return [pending.length, printId(first[0]), printId(last[0]), byConsumer];
}

/** [IDLE ms] start end count [consumer] */
function pendingDetails(group: Group, words: readonly string[], now: number): ByteReply {
  const idles = words[0]!.toUpperCase() === "IDLE";
  const idle = idles ? index(words[1] ?? "") : 0;
  const [start, end, count, consumer, ...more] = idles ? words.slice(2) : words;
  if (start === undefined || end === undefined || count === undefined || more.length > 0) throw syntaxError();
  const most = Math.max(0, index(count));
  const [from, to] = [readStart(start), readEnd(end)];
  return inOrder(group)
    .filter(([id, pending]) => {
      const isWanted = consumer === undefined || pending.consumer === consumer;
      return isWanted && id >= from && id <= to && now - pending.time >= idle;
    })
    .slice(0, most)
    .map(([id, pending]) => [printId(id), pending.consumer, now - pending.time, pending.count]);
}

interface ClaimOptions {
  /** When the entries count as delivered, in ms since 1970. */
  readonly time: number;
  readonly count: number | undefined;
  /** Whether entries that are not pending are claimed as well. */
  readonly force: boolean;
  /** Whether the reply has only IDs; then the deliveries do not count. */
  readonly justId: boolean;
}

/** XCLAIM key group consumer min-idle-time id … [IDLE ms] [TIME ms] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID id] */
function claim(space: Keyspace, [key, name, consumer, minIdle, ...words]: readonly string[]): ByteReply {
  const { stream, group } = find(space, key!, name!);
  const idle = readIdle("XCLAIM", minIdle!);
  const firstOption = words.findIndex((word) => !/^[0-9]+(?:-[0-9]+)?$/.test(word));
  const idCount = firstOption < 0 ? words.length : firstOption;
  const ids = words.slice(0, idCount).map((word) => parseId(word));
  const options = readClaimOptions(words.slice(idCount), group, space.now);
  return ids.flatMap((id) => {
    const entry = stream.entries.find((each) => each.id === id);
    if (!entry) {
      group.pending.delete(id);
      return [];
    }
    const before = group.pending.get(id);
    if (!before && !options.force) return [];
    if (before && space.now - before.time < idle) return [];
    group.consumers.set(consumer!, space.now);
    take(group, id, consumer!, options);
    return [options.justId ? printId(id) : entryReply(entry)];
  });
}

function take(group: Group, id: bigint, consumer: string, { time, count, justId }: ClaimOptions): void {
  const before = group.pending.get(id)?.count ?? 0;
  group.pending.set(id, { consumer, time, count: count ?? (justId ? before : before + 1) });
}

function readIdle(command: string, word: string): number {
  const idle = /^-?[0-9]+$/.test(word) ? Number(word) : undefined;
  if (idle === undefined) throw new ReplyError(`ERR Invalid min-idle-time argument for ${command}`);
  return Math.max(0, idle);
}

function readClaimOptions(words: readonly string[], group: Group, now: number): ClaimOptions {
  let time = now;
  let count: number | undefined;
  let force = false;
  let justId = false;
  for (let position = 0; position < words.length; position++) {
    const option = words[position]!.toUpperCase();
    const value = words[position + 1];
    if (option === "FORCE") {
      force = true;
    } else if (option === "JUSTID") {
      justId = true;
    } else if (value === undefined || !/^(?:IDLE|TIME|RETRYCOUNT|LASTID)$/.test(option)) {
      throw new ReplyError(`ERR Unrecognized XCLAIM option '${words[position]}'`);
    } else {
      position++;
      if (option === "IDLE") time = now - index(value);
      if (option === "TIME") time = index(value);
      if (option === "RETRYCOUNT") count = index(value);
      if (option === "LASTID" && parseId(value) > group.lastId) group.lastId = parseId(value);
    }
  }
  return { time: Math.min(time, now), count, force, justId };
}

function readMost(word: string): number {
  const most = parseInteger(word);
  if (most === undefined || most < 1n) throw new ReplyError("ERR COUNT must be > 0");
  return Number(most);
}

/** XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID] */
function autoClaim(
  space: Keyspace,
  [key, name, consumer, minIdle, start, ...words]: readonly string[],
): ByteReply {
  const idle = readIdle("XAUTOCLAIM", minIdle!);
  const from = readStart(start!);
  let most = 100;
  let justId = false;
  for (let position = 0; position < words.length; position++) {
    const option = words[position]!.toUpperCase();
    if (option === "JUSTID") justId = true;
    else if (option === "COUNT" && words[position + 1] !== undefined) most = readMost(words[++position]!);
    else throw syntaxError();
  }
  const { stream, group } = find(space, key!, name!);
  const claimed: ByteReply[] = [];
  const deleted: string[] = [];
  // As in Redis, up to ten times as many entries are looked at as may be claimed.
  let looks = most * 10;
  for (const [id, pending] of inOrder(group).filter(([each]) => each >= from)) {
    if (claimed.length + deleted.length >= most || looks-- === 0) return [printId(id), claimed, deleted];
    const entry = stream.entries.find((each) => each.id === id);
    if (!entry) {
      group.pending.delete(id);
      deleted.push(printId(id));
    } else if (space.now - pending.time >= idle) {
      group.consumers.set(consumer!, space.now);
      take(group, id, consumer!, { time: space.now, count: undefined, force: false, justId });
      claimed.push(justId ? printId(id) : entryReply(entry));
    }
  }
  return ["0-0", claimed, deleted];
}
