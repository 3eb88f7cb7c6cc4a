import { sha1 } from "@noble/hashes/legacy.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import { type Reply, type Twin, type TwinCall, TwinError } from "../twins/twin.ts";
import { twins } from "../twins/twins.ts";
import type { Command, CommandContext, CommandTable } from "./command.ts";
import { execute, unknownCommand } from "./execute.ts";
import { integer, ReplyError } from "./reply-error.ts";

// EVAL, EVALSHA and SCRIPT without Lua: the scripts of this version of redlock-edge are known, and their twins run.

/** The first line of a script that only Upstash knows: the rest does the same without it. */
export const upstashFlag = "#!lua flags=allow-key-locking\n";

const evalText: Command = (context, [text, ...rest]) => run(context, load(context, text!).twin, rest);

const evalHash: Command = (context, [hash, ...rest]) => {
  const twin = (context.loaded ?? twins).get(hash!.toLowerCase());
  if (!twin) throw new ReplyError("NOSCRIPT No matching script");
  return run(context, twin, rest);
};

const script: Command = (context, [subcommand, ...words]) => {
  switch (subcommand!.toUpperCase()) {
    case "LOAD":
      return load(context, words[0] ?? "").sha;
    case "EXISTS":
      return words.map((sha) => Number((context.loaded ?? twins).has(sha.toLowerCase())));
    case "FLUSH":
      context.loaded?.clear();
      return "OK";
    default:
      throw unknownCommand(context, `SCRIPT ${subcommand}`);
  }
};

/** The id of a script. Not by Web Crypto, which has only promises: a command is executed at once. */
const shaOf = (text: string) => bytesToHex(sha1(utf8ToBytes(text)));

/** The twin of a text, whose hash is known from now on. */
function load(context: CommandContext, text: string): { readonly sha: string; readonly twin: Twin } {
  const sha = shaOf(text);
  const plain = text.startsWith(upstashFlag) ? shaOf(text.slice(upstashFlag.length)) : sha;
  const twin = twins.get(plain);
  if (!twin) throw context.unknown("script");
  context.loaded?.set(sha, twin);
  return { sha, twin };
}

function run(context: CommandContext, twin: Twin, [count, ...words]: readonly string[]): Reply {
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
  SCRIPT: [script, [1, Infinity]],
};
