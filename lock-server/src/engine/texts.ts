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
    const value = space.entry(key)?.value;
    return typeof value === "string" ? value : null;
  });

const del: Command = ({ space }, keys) => keys.filter((key) => space.delete(key)).length;

const exists: Command = ({ space }, keys) => keys.filter((key) => space.entry(key)).length;

const pttl: Command = ({ space }, [key]) => {
  const entry = space.entry(key!);
  if (!entry) return -2;
  return entry.deadline === null ? -1 : entry.deadline - space.now;
};

/** `after`: the deadline for the number that the command was given. */
const expire =
  (after: (now: number, ms: number) => number): Command =>
  ({ space }, [key, ms]) =>
    Number(space.expire(key!, after(space.now, integer(ms!))));

/** The options of SET, and of which of them only one may be given. */
const groups: Readonly<Record<string, "condition" | "expiry" | "reply">> = {
  NX: "condition",
  IFEQ: "condition",
  PX: "expiry",
  KEEPTTL: "expiry",
  GET: "reply",
};

type Options = Partial<Record<(typeof groups)[string], readonly [name: string, value: string]>>;

function optionsOf(words: readonly string[]): Options {
  const options: Options = {};
  for (let index = 0; index < words.length; index += 1) {
    const name = words[index]!.toUpperCase();
    const group = groups[name];
    if (name === "IFEQ" || name === "PX") index += 1;
    const value = words[index];
    if (group === undefined || value === undefined || options[group]) throw syntaxError();
    options[group] = [name, value];
  }
  return options;
}

const set: Command = ({ space }, [key, value, ...rest]) => {
  const { condition: [how, expected] = [], expiry: [expiry, given] = [], reply } = optionsOf(rest);
  const ms = expiry === "PX" ? integer(given!) : undefined;
  if (ms !== undefined && ms <= 0) throw new ReplyError("ERR invalid expire time in 'set' command");
  // A key of another kind is an error only where its text matters.
  const old = reply || how === "IFEQ" ? space.text(key!) : undefined;
  const isMet = how === "NX" ? !space.entry(key!) : how === undefined || old === expected;
  const deadline = ms === undefined ? null : space.now + ms;
  if (isMet) space.put(key!, value!, expiry === "KEEPTTL" ? undefined : deadline);
  if (reply) return old ?? null;
  return isMet ? "OK" : null;
};

const delex: Command = ({ space }, [key, condition, value]) => {
  if (condition!.toUpperCase() !== "IFEQ") throw syntaxError();
  const found = space.entry(key!)?.value;
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
  DELEX: [delex, [3, 3]],
  EXISTS: [exists, [1, Infinity]],
  PTTL: [pttl, [1, 1]],
  PEXPIRE: [expire((now, ms) => now + ms), [2, 2]],
  PEXPIREAT: [expire((_, ms) => ms), [2, 2]],
  PUBLISH: [publish, [2, 2]],
  PUBSUB: [pubSub, [1, Infinity]],
};
