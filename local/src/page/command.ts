import { parseKey, type StoredKey } from "../../../src/inspect/stored-key.ts";
import { isOfRuns } from "./key.ts";
import { mailboxOperation, mailboxResult } from "./mailbox.ts";

// What a command of this library's does, and what its reply means. The pictures of the docs use it too. Scripts are known by the
// kinds of their keys and by what they write, wherever that stands among their arguments.

const isScript = ([name = ""]: readonly string[]): boolean => /^(EVAL|EVALSHA|FCALL)(_RO)?$/i.test(name);

const keyCount = (command: readonly string[]): number => Number(command[2] ?? 0);

/** The keys of this library's in a command. */
export function keysIn(command: readonly string[]): StoredKey[] {
  const words = isScript(command) ? command.slice(3, 3 + keyCount(command)) : command.slice(1);
  return words.slice(0, 100).flatMap((word) => parseKey(word) ?? []);
}

/** What scripts call their operations, and what those are to a lock and to a run. */
const operations: Readonly<Record<string, readonly [lock: string, run: string]>> = {
  claim: ["acquire", "begin"],
  prove: ["acquire", "begin"],
  acquire: ["acquire", "begin"],
  keep: ["extend", "extend"],
  extend: ["extend", "extend"],
  end: ["release", "end"],
  release: ["release", "end"],
  free: ["free", "free"],
  peek: ["peek", "peek"],
};

const isComplete = (word: string): boolean => /^[CN]1 /.test(word);
const isPending = (word: string): boolean => word.startsWith("P1 ");

/** What a command does to a key: `acquire`, `extend`, `release`, …; the command's name where it does not say so. */
export function operationOf(command: readonly string[], key: StoredKey | undefined): string {
  const name = (command[0] ?? "").toUpperCase();
  if (!key) return name;
  if (key.kind === "tries") return "count";
  const ofRun = isOfRuns(key);
  if (isScript(command)) {
    const words = command.slice(3 + keyCount(command));
    if (key.kind === "mailbox") return mailboxOperation(words) ?? name;
    const word = words.find((each) => Object.hasOwn(operations, each));
    if (word === undefined) return name;
    const operation = operations[word]![ofRun ? 1 : 0];
    const stores = words.some(isComplete) && (operation !== "end" || words.some(isPending));
    return ofRun && stores ? "complete" : operation;
  }
  const options = command.slice(3).map((word) => word.toUpperCase());
  if (name === "SET" && options.includes("NX")) return ofRun ? "begin" : "acquire";
  if (name === "SET" && options.includes("IFEQ"))
    return ofRun && isComplete(command[2] ?? "") ? "complete" : "extend";
  if (name === "DELEX") return ofRun ? "end" : "release";
  return name;
}

/** What the results of a mailbox's commands mean, unless that is `granted`. */
const answers: Readonly<Record<string, "held" | "gone">> = {
  queued: "held",
  "held by another": "held",
  duplicate: "held",
  full: "held",
  "more messages": "held",
  gone: "gone",
};

/** What the reply to an operation means. `held`: another has it. `gone`: it was not there any more. */
export function answerOf(
  operation: string,
  command: readonly string[],
  reply: unknown,
): "granted" | "held" | "gone" {
  if (keysIn(command)[0]?.kind === "mailbox") return answers[mailboxResult(operation, reply)] ?? "granted";
  const isRefused = operation === "acquire" || operation === "begin" ? "held" : "gone";
  // With NX and GET, SET returns what was there before.
  if (/^SET$/i.test(command[0] ?? "") && command.slice(3).some((word) => /^GET$/i.test(word))) {
    return reply === null || (operation === "begin" && reply === command[2]) ? "granted" : isRefused;
  }
  const [first, ...others] = [reply].flat(2) as unknown[];
  // What an end has found, key by key: `tf`. That of a run is about its record.
  const isEnd = /^(?:release|end|complete)$/.test(operation);
  const hits = isEnd ? others.map(String).find((each) => /^[tf]+$/.test(each)) : undefined;
  if (hits !== undefined) {
    const record = keysIn(command).findIndex(isOfRuns);
    return (record < 0 ? !hits.includes("f") : hits[record] === "t") ? "granted" : "gone";
  }
  return first === null || first === 0 ? isRefused : "granted";
}

/** What a begin that was refused has found: another run that is `complete` or `pending`; undefined: a lock, or nothing. */
export function foundRecord(reply: unknown): "complete" | "pending" | undefined {
  const texts = ([reply].flat(3) as unknown[]).map(String);
  if (texts.some(isComplete)) return "complete";
  return texts.some(isPending) ? "pending" : undefined;
}
