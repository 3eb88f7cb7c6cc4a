import { parseKey, type StoredKey } from "../../../src/stored/parse.ts";
import { recordKind } from "./key.ts";

// What a command of this library's does, and what its reply means. The playground uses it too.

const isScript = ([name = ""]: readonly string[]): boolean => /^(EVAL|EVALSHA|FCALL)(_RO)?$/i.test(name);

/** The keys of this library's in a command. */
export function keysIn(command: readonly string[]): StoredKey[] {
  const words = isScript(command) ? command.slice(3, 3 + Number(command[2] ?? 0)) : command.slice(1);
  return words.slice(0, 100).flatMap((word) => parseKey(word) ?? []);
}

const operations = new Set("acquire extend release free peek".split(" "));

/** What the script of cells calls an operation, and what that is to a lock and to a run. */
const cellOperations: Readonly<Record<string, readonly [lock: string, run: string]>> = {
  claim: ["acquire", "begin"],
  prove: ["acquire", "begin"],
  keep: ["extend", "extend"],
  end: ["release", "end"],
};

/** What a command does to a key: `acquire`, `extend`, `release`, …; the command's name where it does not say so. */
export function operationOf(command: readonly string[], key: StoredKey | undefined): string {
  const name = (command[0] ?? "").toUpperCase();
  if (!key) return name;
  if (key.kind === "tries") return "count";
  if (isScript(command)) {
    const word = command[3 + Number(command[2])] ?? "";
    const [ofLock, ofRun] = cellOperations[word] ?? [];
    return (recordKind(key) ? ofRun : ofLock) ?? (operations.has(word) ? word : name);
  }
  const options = command.slice(3).map((word) => word.toUpperCase());
  if (name === "SET" && options.includes("NX")) return recordKind(key) ? "begin" : "acquire";
  if (name === "SET" && options.includes("IFEQ")) {
    return recordKind(key) && /^[CN]1 /.test(command[2] ?? "") ? "complete" : "extend";
  }
  return name === "DELEX" ? "release" : name;
}

/** What the reply to an operation means. */
export function answerOf(
  operation: string,
  command: readonly string[],
  reply: unknown,
): "granted" | "held" | "gone" {
  // With NX and GET, SET returns what was there before.
  if (/^SET$/i.test(command[0] ?? "") && command.slice(3).some((word) => /^GET$/i.test(word))) {
    return reply === null || (operation === "begin" && reply === command[2]) ? "granted" : "held";
  }
  const items: unknown = Array.isArray(reply) && Array.isArray(reply[0]) ? reply[0] : reply;
  const [first, , hits]: unknown[] = Array.isArray(items) ? items : [items];
  // What an end has found, key by key. That of a run is about its record, the first key.
  if (operation === "end") return String(hits).startsWith("t") ? "granted" : "gone";
  if (operation === "release" && String(hits ?? "").includes("f")) return "gone";
  if (first !== null && first !== 0) return "granted";
  return operation === "acquire" || operation === "begin" ? "held" : "gone";
}
