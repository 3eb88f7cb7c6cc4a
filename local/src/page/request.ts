import type { Buffer } from "node:buffer";
import { ReplyError } from "../engine/engine.ts";
import { type Argument, nameOf, textOf } from "../rest/argument.ts";
import type { WireReply } from "../rest/redis/resp.ts";
import { isShown, type KeyParts, partsOf, recordKind } from "./key.ts";

// What a request does, by its words. No I/O.

/** A request in words of this library, as far as they can be told. */
export interface RequestWords {
  /** `acquire`, `extend`, `release`, …, or the command's name. */
  readonly operation: string;
  readonly key: KeyParts | undefined;
  /** All keys of this library's in it that the page shows. */
  readonly keys: readonly KeyParts[];
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
  const [first = [""]] = commands;
  const keys = commands.flatMap((command) => keysOf(command)).filter(isShown);
  // An own script names other keys as well: what it is about comes first.
  const key = keys[0] ?? commands.flatMap((command) => keysOf(command))[0];
  const found = commands.flatMap((command) =>
    command.slice(1).flatMap((word) => [...beginningOf(word).matchAll(/t[0-9a-f]{32}/g)].map(([one]) => one)),
  );
  const operation = commands.length > 1 ? `${commands.length} commands` : operationOf(first, key);
  return { operation, key, keys, tokens: [...new Set(found)].slice(0, 20), commands: commands.length };
}

/** Enough of an argument: results of runs may be long. */
const beginningOf = (word: Argument): string => textOf(word).slice(0, 2_000);

function keysOf(command: readonly Argument[]): KeyParts[] {
  const count = isScript(command) ? Number(textOf(command[2] ?? "0")) : undefined;
  const words = count === undefined ? command.slice(1, 101) : command.slice(3, 3 + Math.min(count, 100));
  return words.flatMap((word) => partsOf(beginningOf(word)) ?? []);
}

const isScript = (command: readonly Argument[]): boolean =>
  /^(EVAL|EVALSHA|FCALL)(_RO)?$/.test(nameOf(command));

const operations = new Set("acquire restore extend release free look begin end".split(" "));

function operationOf(command: readonly Argument[], key: KeyParts | undefined): string {
  const name = nameOf(command);
  if (!key) return name;
  if (key.kind === "tries") return "count";
  const words = command.map(beginningOf);
  if (isScript(command)) {
    const word = words[3 + Number(words[2])] ?? "";
    return operations.has(word) ? word : name;
  }
  const options = words.slice(3).map((word) => word.toUpperCase());
  if (name === "SET" && options.includes("NX")) return recordKind(key) ? "begin" : "acquire";
  if (name === "SET" && options.includes("IFEQ")) {
    if (!recordKind(key)) return "extend";
    return /^[CN]1 /.test(words[2] ?? "") ? "complete" : "extend";
  }
  return name === "DELEX" ? "release" : name;
}

/** What the reply to a command means: `granted`, `held`, `gone`, `error`; undefined where it is none of these. */
export function outcomeOf(
  { operation, key }: RequestWords,
  command: readonly Argument[],
  reply: WireReply,
): "granted" | "held" | "gone" | "error" | undefined {
  if (reply instanceof ReplyError) return "error";
  if (!key || operation === nameOf(command)) return undefined;
  if (operation === "look" || operation === "count") return undefined;
  const missing = operation === "acquire" || operation === "begin" ? "held" : "gone";
  if (nameOf(command) === "SET" && operation === "begin") {
    const own = textOf(command[2] ?? "");
    const found = reply instanceof Uint8Array ? textOf(reply) : undefined;
    return found === undefined || found === own ? "granted" : "held";
  }
  const first = Array.isArray(reply) ? reply[0] : reply;
  return first === null || first === 0 ? missing : "granted";
}
