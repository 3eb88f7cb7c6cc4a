import type { Reply, Twin, TwinCall } from "../twins/twin.ts";
import { twins } from "../twins/twins.ts";
import { CommandError, integer } from "./command-error.ts";

/** The script by which `forgetKey` removes what is no text. It is sent by its text, and has no twin elsewhere. */
const removeWrongType: Twin["run"] = ({ call, keys }) =>
  call("TYPE", keys[0]!) === "string" ? 0 : call("DEL", keys[0]!);

/** By hash. This server has no Lua: it knows the scripts of its own version of this package, and runs their twins. */
const known: ReadonlyMap<string, Twin["run"]> = new Map([
  ...[...twins].map(([sha, { run }]) => [sha, run] as const),
  ["06b6e8dfa20e9235080e58234c576abde4ec7b14", removeWrongType],
  ["2b858092bfe8546ec81ee10d496f833a575b9feb", removeWrongType],
]);

/** The command with the hash of a script in place of its text. */
export async function hashed(command: readonly string[]): Promise<readonly string[]> {
  const [name = "", first = "", ...rest] = command;
  const upper = name.toUpperCase();
  if (upper === "EVAL") return [upper, await sha1(first), ...rest];
  if (upper === "SCRIPT" && first.toUpperCase() === "LOAD") return [upper, "LOAD", await sha1(rest[0] ?? "")];
  return command;
}

async function sha1(text: string): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-1", new TextEncoder().encode(text)));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Whether a command is about scripts: EVAL, EVALSHA or SCRIPT. */
export function isOfScripts([name = ""]: readonly string[]): boolean {
  return /^(?:EVAL(?:SHA)?|SCRIPT)$/i.test(name);
}

/**
 * Runs a script, or says what is known of it: a command as {@link hashed} returns it.
 *
 * @param call executes a command of the script
 * @throws CommandError where this server does not know the script
 */
export function executeScript(command: readonly string[], call: (words: readonly string[]) => Reply): Reply {
  const [name = "", first = "", ...rest] = command;
  const upper = name.toUpperCase();
  if (upper === "SCRIPT") {
    if (first.toUpperCase() === "EXISTS") return rest.map((sha) => Number(known.has(sha.toLowerCase())));
    if (first.toUpperCase() === "FLUSH") return "OK";
    if (first.toUpperCase() === "LOAD" && known.has(rest[0] ?? "")) return rest[0]!;
    throw unknownScript();
  }
  const given = twinCall(rest, call);
  const run = known.get(first.toLowerCase());
  if (!run) throw upper === "EVAL" ? unknownScript() : new CommandError("NOSCRIPT No matching script");
  return run(given);
}

function twinCall(
  [count = "", ...words]: readonly string[],
  command: (words: readonly string[]) => Reply,
): TwinCall {
  const keys = integer(count);
  if (keys < 0 || keys > words.length) {
    throw new CommandError("ERR Number of keys can't be greater than number of args");
  }
  const call: TwinCall["call"] = (...parts) => command(parts.map(String));
  const attempt: TwinCall["attempt"] = (...parts) => {
    try {
      return call(...parts);
    } catch (error) {
      if (error instanceof CommandError) return undefined;
      throw error;
    }
  };
  return { call, attempt, keys: words.slice(0, keys), args: words.slice(keys) };
}

function unknownScript(): CommandError {
  return new CommandError(
    "ERR this lock server runs only the scripts of its own version of redlock-edge: deploy it with the version of its users",
  );
}
