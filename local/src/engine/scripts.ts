import { sha1 } from "@noble/hashes/legacy.js";
import { bytesToHex, utf8ToBytes } from "@noble/hashes/utils.js";
import type { Command, CommandContext, CommandTable } from "../../../lock-server/src/engine/command.ts";
import { unknownCommand } from "../../../lock-server/src/engine/execute.ts";
import { runTwin } from "../../../lock-server/src/engine/scripts.ts";
import type { Twin } from "../../../lock-server/src/twins/twin.ts";
import { twins } from "../../../lock-server/src/twins/twins.ts";

/** The first line of a script that only Upstash knows: the rest does the same without it. */
export const upstashFlag = "#!lua flags=allow-key-locking\n";

/** The id of a script. Not by Web Crypto, which has only promises: a command is executed at once. */
const shaOf = (text: string): string => bytesToHex(sha1(utf8ToBytes(text)));

/** EVAL and SCRIPT of a server that learns the scripts that it is sent, by their hashes. */
export function scriptCommands(loaded: Map<string, Twin>): CommandTable {
  function load(context: CommandContext, text: string): { readonly sha: string; readonly twin: Twin } {
    const sha = shaOf(text);
    const plain = text.startsWith(upstashFlag) ? shaOf(text.slice(upstashFlag.length)) : sha;
    const twin = twins.get(plain);
    if (!twin) throw context.unknown("script");
    loaded.set(sha, twin);
    return { sha, twin };
  }
  const script: Command = (context, [subcommand, ...words]) => {
    switch (subcommand!.toUpperCase()) {
      case "LOAD":
        return load(context, words[0] ?? "").sha;
      case "EXISTS":
        return words.map((sha) => Number(loaded.has(sha.toLowerCase())));
      case "FLUSH":
        loaded.clear();
        return "OK";
      default:
        throw unknownCommand(context, `SCRIPT ${subcommand}`);
    }
  };
  return {
    EVAL: [(context, [text, ...rest]) => runTwin(context, load(context, text!).twin, rest), [2, Infinity]],
    SCRIPT: [script, [1, Infinity]],
  };
}
