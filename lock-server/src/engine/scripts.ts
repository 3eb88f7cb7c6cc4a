import { type Reply, type Twin, type TwinCall, TwinError } from "../twins/twin.ts";
import type { Command, CommandContext, CommandTable } from "./command.ts";
import { execute } from "./execute.ts";
import { integer, ReplyError } from "./reply-error.ts";

// EVAL and EVALSHA without Lua: the scripts of this version of redlock-edge are known, and their twins run.

/** A script by its text: who knows the text has put EVALSHA in its place before. */
const evalText: Command = (context) => {
  throw context.unknown("script");
};

const evalHash: Command = (context, [hash, ...rest]) => {
  const twin = context.scripts.get(hash!.toLowerCase());
  if (!twin) throw new ReplyError("NOSCRIPT No matching script");
  return runTwin(context, twin, rest);
};

/** Runs a twin with the number of its keys, its keys and its arguments. */
export function runTwin(context: CommandContext, twin: Twin, [count, ...words]: readonly string[]): Reply {
  const keys = integer(count!);
  if (keys < 0) throw new ReplyError("ERR Number of keys can't be negative");
  if (keys > words.length) throw new ReplyError("ERR Number of keys can't be greater than number of args");
  const call: TwinCall["call"] = (...parts) => execute(context, parts.map(String));
  try {
    return twin.run({ call, keys: words.slice(0, keys), args: words.slice(keys) });
  } catch (error) {
    // Its message is not quoted: it has a part of what is stored.
    if (error instanceof TwinError) throw new ReplyError("ERR the script found no number where one must be");
    throw error;
  }
}

export const scriptCommands: CommandTable = {
  EVAL: [evalText, [2, Infinity]],
  EVALSHA: [evalHash, [2, Infinity]],
};
