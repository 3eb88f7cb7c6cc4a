import { type Reply, type Twin, type TwinCall, TwinError } from "../twins/twin.ts";
import { twins } from "../twins/twins.ts";
import type { Command, CommandContext, CommandTable } from "./command.ts";
import { execute, unknownCommand } from "./execute.ts";
import { integer, ReplyError } from "./reply-error.ts";
import { sha1 } from "./sha1.ts";

// EVAL, EVALSHA and SCRIPT without Lua: the scripts of this version of redlock-edge are known, and their twins run.

/** By hash. */
const known: ReadonlyMap<string, Twin["run"]> = new Map([...twins].map(([sha, { run }]) => [sha, run]));

const evalText: Command = (context, [text, ...rest]) => run(context, load(context, text!), rest);

const evalHash: Command = (context, [hash, ...rest]) => {
  const sha = hash!.toLowerCase();
  if (!has(context, sha)) throw new ReplyError("NOSCRIPT No matching script");
  return run(context, sha, rest);
};

const script: Command = (context, [subcommand, ...words]) => {
  switch (subcommand!.toUpperCase()) {
    case "LOAD":
      return load(context, words[0] ?? "");
    case "EXISTS":
      return words.map((sha) => Number(has(context, sha.toLowerCase())));
    case "FLUSH":
      context.loaded?.clear();
      return "OK";
    default:
      throw unknownCommand(context, `SCRIPT ${subcommand}`);
  }
};

/** The hash of a text, whose script is known from now on. */
function load(context: CommandContext, text: string): string {
  const sha = sha1(text);
  if (!known.has(sha)) throw context.unknown("script");
  context.loaded?.add(sha);
  return sha;
}

const has = ({ loaded }: CommandContext, sha: string) => (loaded ?? known).has(sha);

function run(context: CommandContext, sha: string, [count, ...words]: readonly string[]): Reply {
  const keys = integer(count!);
  if (keys < 0) throw new ReplyError("ERR Number of keys can't be negative");
  if (keys > words.length) throw new ReplyError("ERR Number of keys can't be greater than number of args");
  const call: TwinCall["call"] = (...parts) => execute(context, parts.map(String));
  const attempt: TwinCall["attempt"] = (...parts) => {
    try {
      return call(...parts);
    } catch (error) {
      if (error instanceof ReplyError) return undefined;
      throw error;
    }
  };
  try {
    return known.get(sha)!({ call, attempt, keys: words.slice(0, keys), args: words.slice(keys) });
  } catch (error) {
    // Its message is not quoted: it has a part of what is stored.
    if (error instanceof TwinError) throw new ReplyError("ERR the script found no number where one must be");
    throw error;
  }
}

export const scriptCommands: CommandTable = {
  EVAL: [evalText, [2, Infinity]],
  EVALSHA: [evalHash, [2, Infinity]],
  SCRIPT: [script, [1, Infinity]],
};
