import { compareBytes } from "./bytes.ts";
import type { Command, Commands } from "./command.ts";
import type { Keyspace } from "./keyspace.ts";
import { index } from "./numbers.ts";
import { type ByteReply, ok, ReplyError } from "./reply.ts";
import { entryReply } from "./stream.ts";
import { parseId, printId } from "./stream-id.ts";
import { countUpTo, type Group, hasGaps, newStream, type Stream } from "./stream-value.ts";

/** The subcommands of XGROUP. */
export const groupSubcommands: Commands = {
  CREATE: onKey(-5, true, create),
  SETID: onKey(-5, true, (space, [subcommand, key, name, id, ...words]) => {
    const { stream, group } = find(space, key!, name!);
    group.lastId = readPosition(stream, id!);
    group.read = readOptions(subcommand!, words).read;
    return ok;
  }),
  DESTROY: onKey(4, true, (space, [, key, name]) => (existing(space, key!).groups.delete(name!) ? 1 : 0)),
  CREATECONSUMER: onKey(5, true, (space, [, key, name, consumer]) => {
    const { consumers } = find(space, key!, name!).group;
    if (consumers.has(consumer!)) return 0;
    consumers.set(consumer!, space.now);
    return 1;
  }),
  DELCONSUMER: onKey(5, true, (space, [, key, name, consumer]) => {
    const { consumers, pending } = find(space, key!, name!).group;
    consumers.delete(consumer!);
    const own = [...pending].filter(([, each]) => each.consumer === consumer);
    for (const [id] of own) pending.delete(id);
    return own.length;
  }),
};

/** The subcommands of XINFO. */
export const infoSubcommands: Commands = {
  STREAM: onKey(3, false, (space, [, key]) => describe(read(space, key!))),
  GROUPS: onKey(3, false, (space, [, key]) => {
    const stream = read(space, key!);
    return byName(stream.groups).map(([name, group]) => [
      ...["name", name, "consumers", group.consumers.size, "pending", group.pending.size],
      ...["last-delivered-id", printId(group.lastId), "entries-read", group.read ?? null],
      ...["lag", lagOf(stream, group)],
    ]);
  }),
  CONSUMERS: onKey(4, false, (space, [, key, name]) => {
    read(space, key!);
    const { consumers, pending } = find(space, key!, name!).group;
    return byName(consumers).map(([consumer, seen]) => {
      const own = [...pending.values()].filter((each) => each.consumer === consumer);
      return ["name", consumer, "pending", own.length, "idle", space.now - seen];
    });
  }),
};

/** In the order of their names, as Redis keeps them. */
function byName<Value>(named: ReadonlyMap<string, Value>): [string, Value][] {
  return [...named].sort(([one], [other]) => compareBytes(one, other));
}

/** A subcommand whose key follows it. */
function onKey(arity: number, write: boolean, run: Command["run"]): Command {
  return { arity, keys: [1, 1, 1], write, run };
}

function existing(space: Keyspace, key: string): Stream {
  const stream = space.value(key, "stream");
  if (stream) return stream;
  throw new ReplyError(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the " +
      "MKSTREAM option to create an empty stream automatically.",
  );
}

function find(
  space: Keyspace,
  key: string,
  name: string,
): { readonly stream: Stream; readonly group: Group } {
  const stream = existing(space, key);
  const group = stream.groups.get(name);
  if (group) return { stream, group };
  throw new ReplyError(`NOGROUP No such consumer group '${name}' for key name '${key}'`);
}

/** XGROUP CREATE key group id | $ [MKSTREAM] [ENTRIESREAD count] */
function create(space: Keyspace, [subcommand, key, name, id, ...words]: readonly string[]): ByteReply {
  const { creates, read: entriesRead } = readOptions(subcommand!, words);
  const found = space.value(key!, "stream");
  const stream = found ?? (creates ? newStream() : existing(space, key!));
  const lastId = readPosition(stream, id!);
  if (!found) space.put(key!, "stream", stream, undefined);
  if (stream.groups.has(name!)) throw new ReplyError("BUSYGROUP Consumer Group name already exists");
  stream.groups.set(name!, { lastId, read: entriesRead, pending: new Map(), consumers: new Map() });
  return ok;
}

function readPosition(stream: Stream, id: string): bigint {
  return id === "$" ? stream.lastId : parseId(id);
}

function readOptions(
  subcommand: string,
  words: readonly string[],
): { readonly creates: boolean; readonly read: number | undefined } {
  let creates = false;
  let entriesRead: number | undefined;
  for (let position = 0; position < words.length; position++) {
    const option = words[position]!.toUpperCase();
    if (option === "MKSTREAM" && subcommand.toUpperCase() === "CREATE") {
      creates = true;
    } else if (option === "ENTRIESREAD" && words[position + 1] !== undefined) {
      const count = index(words[++position]!);
      if (count < -1) throw new ReplyError("ERR value for ENTRIESREAD must be positive or -1");
      entriesRead = count < 0 ? undefined : count;
    } else {
      throw new ReplyError(
        `ERR unknown subcommand or wrong number of arguments for '${subcommand}'. Try XGROUP HELP.`,
      );
    }
  }
  return { creates, read: entriesRead };
}

function read(space: Keyspace, key: string): Stream {
  const stream = space.value(key, "stream");
  if (!stream) throw new ReplyError("ERR no such key");
  return stream;
}

/** How many entries a group has still to read; null if that is not known. */
function lagOf(stream: Stream, group: Group): ByteReply {
  const isCounted = group.read !== undefined && !hasGaps(stream, group.lastId);
  const read = isCounted ? group.read : countUpTo(stream, group.lastId);
  return read === undefined ? null : stream.added - read;
}

function describe({ entries, lastId, mostDeleted, added, groups }: Stream): ByteReply {
  const [first, last] = [entries[0], entries.at(-1)];
  // Redis keeps up to 100 entries in a node of its tree.
  const nodes = Math.ceil(entries.length / 100);
  return [
    ...["length", entries.length, "radix-tree-keys", nodes, "radix-tree-nodes", nodes + 1],
    ...["last-generated-id", printId(lastId), "max-deleted-entry-id", printId(mostDeleted)],
    ...["entries-added", added, "recorded-first-entry-id", printId(first?.id ?? 0n)],
    ...["groups", groups.size, "first-entry", first ? entryReply(first) : null],
    ...["last-entry", last ? entryReply(last) : null],
  ];
}
