import type { Command, CommandTable } from "./command.ts";
import { unknownCommand } from "./execute.ts";
import { integer, ReplyError, syntaxError } from "./reply-error.ts";

// Keys of any kind, texts, and channels.

const ping: Command = (_, [word = "PONG"]) => word;

const time: Command = ({ space }) => [
  String(Math.floor(space.now / 1_000)),
  String((space.now % 1_000) * 1_000),
];

const get: Command = ({ space }, [key]) => space.text(key!) ?? null;

const mget: Command = ({ space }, keys) =>
  keys.map((key) => {
    const value = space.value(key);
    return typeof value === "string" ? value : null;
  });

const del: Command = ({ space }, keys) => keys.filter((key) => space.delete(key)).length;

const exists: Command = ({ space }, keys) => keys.filter((key) => space.head(key)).length;

const type: Command = ({ space }, [key]) => space.head(key!)?.kind ?? "none";

const pttl: Command = ({ space }, [key]) => {
  const head = space.head(key!);
  if (!head) return -2;
  return head.deadline === null ? -1 : head.deadline - space.now;
};

/** `after`: the deadline for the number that the command was given. */
const expire =
  (after: (now: number, ms: number) => number): Command =>
  ({ space }, [key, ms]) =>
    Number(space.expire(key!, after(space.now, integer(ms!))));

/** The options of SET, by name: with a value behind it or without. Those of a group exclude each other. */
const setOptions: Readonly<Record<string, boolean>> = {
  NX: false,
  XX: false,
  GET: false,
  KEEPTTL: false,
  PX: true,
  IFEQ: true,
};
const groups = [
  ["NX", "XX", "IFEQ"],
  ["PX", "KEEPTTL"],
];

function setOptionsOf(words: readonly string[]): ReadonlyMap<string, string> {
  const options = new Map<string, string>();
  for (let index = 0; index < words.length; index += 1) {
    const name = words[index]!.toUpperCase();
    const hasValue = setOptions[name];
    const given = hasValue ? words[index + 1] : "";
    if (hasValue === undefined || given === undefined || (hasValue && options.has(name))) throw syntaxError();
    options.set(name, given);
    if (hasValue) index += 1;
  }
  const isTwice = groups.some((group) => group.filter((name) => options.has(name)).length > 1);
  if (isTwice) throw syntaxError();
  return options;
}

const set: Command = ({ space }, [key, value, ...rest]) => {
  const options = setOptionsOf(rest);
  const ttl = options.get("PX");
  const ms = ttl === undefined ? 0 : integer(ttl);
  if (ttl !== undefined && ms <= 0) throw new ReplyError("ERR invalid expire time in 'set' command");
  const expected = options.get("IFEQ");
  // A key of another kind is an error only where its text matters.
  const old = options.has("GET") || expected !== undefined ? space.text(key!) : undefined;
  const head = space.head(key!);
  const isMet =
    !(options.has("NX") && head) &&
    !(options.has("XX") && !head) &&
    (expected === undefined || old === expected);
  const kept = options.has("KEEPTTL") ? (head?.deadline ?? null) : null;
  if (isMet) space.put(key!, value!, ttl === undefined ? kept : space.now + ms);
  if (options.has("GET")) return old ?? null;
  return isMet ? "OK" : null;
};

const delex: Command = ({ space }, [key, condition, value]) => {
  if (condition !== undefined && (condition.toUpperCase() !== "IFEQ" || value === undefined))
    throw syntaxError();
  const found = condition === undefined ? value : space.value(key!);
  if (found !== undefined && typeof found !== "string") {
    throw new ReplyError("ERR Key should be of string type if conditions are specified");
  }
  return found === value ? Number(space.delete(key!)) : 0;
};

const publish: Command = (context, [channel, payload]) => context.publish(channel!, payload!);

const pubSub: Command = (context, [subcommand, ...channels]) => {
  if (subcommand!.toUpperCase() !== "NUMSUB") throw unknownCommand(context, `PUBSUB ${subcommand}`);
  return channels.flatMap((channel) => [channel, context.subscribers(channel)]);
};

export const textCommands: CommandTable = {
  PING: [ping, [0, 1]],
  TIME: [time, [0, 0]],
  GET: [get, [1, 1]],
  MGET: [mget, [1, Infinity]],
  SET: [set, [2, Infinity]],
  DEL: [del, [1, Infinity]],
  DELEX: [delex, [1, 3]],
  EXISTS: [exists, [1, Infinity]],
  TYPE: [type, [1, 1]],
  PTTL: [pttl, [1, 1]],
  PEXPIRE: [expire((now, ms) => now + ms), [2, 2]],
  PEXPIREAT: [expire((_, ms) => ms), [2, 2]],
  PUBLISH: [publish, [2, 2]],
  PUBSUB: [pubSub, [1, Infinity]],
};
