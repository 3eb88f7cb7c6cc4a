import type { Buffer } from "node:buffer";
import { ReplyError } from "../../../lock-server/src/engine/reply-error.ts";
import { type StoredKey, tokensIn } from "../../../src/stored/parse.ts";
import { type Argument, nameOf, textOf } from "../rest/argument.ts";
import type { WireReply } from "../rest/redis/resp.ts";
import { answerOf, keysIn, operationOf } from "./command.ts";
import { isShown } from "./key.ts";

// What a request does, by its words. No I/O.

/** A request in words of this library, as far as they can be told. */
export interface RequestWords {
  /** `acquire`, `extend`, `release`, …, or the command's name. */
  readonly operation: string;
  readonly key: StoredKey | undefined;
  /** All keys of this library's in it that the page shows. */
  readonly keys: readonly StoredKey[];
  /** The random names in it: clients make them, and no two clients the same. */
  readonly tokens: readonly string[];
  /** How many commands it has. */
  readonly commands: number;
}

/** The commands of a request's path and body; empty if they cannot be read. */
export function commandsOf(path: string, body: Buffer): readonly (readonly string[])[] {
  const [, first = "", ...rest] = path.split("/");
  if (first !== "" && first !== "pipeline" && first !== "multi-exec") return [[first, ...rest].map(decoded)];
  try {
    const sent: unknown = JSON.parse(body.toString());
    if (!Array.isArray(sent) || sent.length === 0) return [];
    return Array.isArray(sent[0]) ? sent.map((each) => [each].flat().map(String)) : [sent.map(String)];
  } catch {
    // Not JSON: the endpoint answers with an error, and the page shows that.
    return [];
  }
}

function decoded(word: string): string {
  try {
    return decodeURIComponent(word);
  } catch {
    return word;
  }
}

/** What a request does. */
export function wordsOf(commands: readonly (readonly Argument[])[]): RequestWords {
  const all = commands.map(wordsIn);
  const found = all.flatMap(keysIn);
  const keys = found.filter(isShown);
  // An own script names other keys as well: what it is about comes first.
  const key = keys[0] ?? found[0];
  const tokens = new Set(all.flatMap(([, ...words]) => words.flatMap(tokensIn)));
  const operation = all.length > 1 ? `${all.length} commands` : operationOf(all[0] ?? [""], key);
  return { operation, key, keys, tokens: [...tokens].slice(0, 20), commands: all.length };
}

/** Enough of each argument: results of runs may be long. */
const wordsIn = (command: readonly Argument[]): string[] =>
  command.map((word) => textOf(word).slice(0, 2_000));

/** `held`: refused because another has it. `gone`: it was not there any more. */
export type Outcome = "granted" | "held" | "gone" | "error";

/** What the reply to a command means; undefined where it is none of these. */
export function outcomeOf(
  { operation, key }: RequestWords,
  command: readonly Argument[],
  reply: WireReply,
): Outcome | undefined {
  if (reply instanceof ReplyError) return "error";
  if (!key || operation === nameOf(command) || operation === "peek" || operation === "count")
    return undefined;
  return answerOf(operation, wordsIn(command), reply instanceof Uint8Array ? textOf(reply) : reply);
}
