import { ReplyError } from "../../../lock-server/src/engine/reply-error.ts";
import { type StoredKey, tokensIn } from "../../../src/inspect/stored-key.ts";
import { type Command, plainReply } from "../rest/backend.ts";
import type { Exchange } from "../rest/observe.ts";
import type { WireReply } from "../rest/redis/resp.ts";
import { answerOf, foundRecord, keysIn, operationOf } from "./command.ts";
import { heldKind, isOfRuns, isShown, labelOf } from "./key.ts";
import { mailboxResult } from "./mailbox.ts";
import type { RequestRow } from "./state.ts";

// What a request does, in words. No I/O.

/** A command in words of this library, as far as they can be told. */
export interface Words {
  /** `acquire`, `extend`, `release`, …, or the command's name. */
  readonly operation: string;
  readonly key: StoredKey | undefined;
  /** The keys of this library's in it that the page shows. */
  readonly keys: readonly StoredKey[];
  /** The random names in it: clients make them, and no two clients the same. */
  readonly tokens: readonly string[];
}

/** Enough of each argument: results of runs may be long. */
const wordsIn = (command: Command): string[] => command.slice(0, 200).map((word) => word.slice(0, 2_000));

/** What a command does. */
export function wordsOf(command: Command): Words {
  const words = wordsIn(command);
  const found = keysIn(words);
  const keys = found.filter(isShown);
  // A script of the user's names other keys as well: what it is about comes first.
  const key = keys.find(isOfRuns) ?? keys[0] ?? found[0];
  const tokens = [...new Set(words.slice(1).flatMap(tokensIn))].slice(0, 20);
  const operation = operationOf(words, key);
  // A script that does not say what it does to a fair lock or a semaphore.
  const isUnnamed = /^(EVAL|FCALL)/.test(operation) && keys[0] !== undefined;
  return { operation: isUnnamed ? (heldKind(keys[0]!) ?? operation) : operation, key, keys, tokens };
}

/** Results in the words of users, by operation: when it was done, and when it was not. */
const results: Readonly<Record<string, readonly [done: string, refused: string]>> = {
  begin: ["begun", "waiting"],
  complete: ["executed", "taken over"],
  end: ["failed", "gone"],
  acquire: ["acquired", "held by another"],
  extend: ["extended", "gone"],
  release: ["released", "gone"],
};

/** What the reply to a command means: `executed`, `replayed`, `waiting`, …, `ok` where it is none of these. */
export function resultOf({ operation, key }: Words, command: Command, reply: WireReply): string {
  // The first word of Redis's error: the rest may quote what was sent.
  if (reply instanceof ReplyError) {
    const [code] = reply.message.split(" ", 1);
    return code === "NOSCRIPT" ? "script not cached" : `error ${code}`;
  }
  const plain = plainReply(reply);
  if (key?.kind === "mailbox") return mailboxResult(operation, plain);
  const [done, refused] = results[operation] ?? (/^[a-z]+ /.test(operation) ? ["ok", "refused"] : []);
  if (done === undefined || refused === undefined) return "ok";
  if (answerOf(operation, wordsIn(command), plain) === "granted") return done;
  return operation === "begin" && foundRecord(plain) === "complete" ? "replayed" : refused;
}

/** A row of a request, whose client is not known yet. */
export type UnnamedRow = Omit<RequestRow, "client">;

/** ms within which a client asks all endpoints. */
const together = 2_000;

/** Rows as one, where a client did the same at several endpoints with the same result. The newest are first. */
export function merged(rows: readonly RequestRow[]): RequestRow[] {
  const found: RequestRow[] = [];
  for (const row of rows) {
    const index = found.findIndex(
      (each) =>
        each.at - row.at < together &&
        !each.endpoints.includes(row.endpoints[0]!) &&
        (["client", "operation", "resource", "result"] as const).every((name) => each[name] === row[name]),
    );
    if (index < 0) found.push(row);
    else found[index] = joined(row, found[index]!);
  }
  return found;
}

const joined = (row: RequestRow, other: RequestRow): RequestRow => ({
  ...row,
  endpoints: [...other.endpoints, ...row.endpoints].sort(),
  ms: Math.max(row.ms, other.ms),
  billed: row.billed + other.billed,
});

/** The rows of a request: one for each of its commands. */
export function rowsOf(
  endpoint: string,
  { at, ms, path, commands, executed, status }: Exchange,
): UnnamedRow[] {
  const row = (command: Command, billed: number, result: string): UnnamedRow => {
    const { operation, key } = wordsOf(command);
    const resource = key ? labelOf(key) : (command[1] ?? "").slice(0, 200);
    // A script of somebody else's: its text says nothing here.
    const about = key || !/^(EVAL|FCALL)/.test(operation) ? resource : "";
    const failed = /^(?:HTTP|error|request lost)|reply lost$/.test(result);
    return { at, ms, endpoints: [endpoint], operation, resource: about, result, billed, failed };
  };
  if (executed.length === 0) {
    const result = status === undefined ? "request lost" : `HTTP ${status}`;
    const [first = [path], ...others] = commands;
    return [first, ...others].map((command) => row(command, 0, result));
  }
  // A fault has executed all of them twice: the last reply counts.
  const times = executed.length === 2 * commands.length ? 2 : 1;
  const note = `${times === 2 ? ", executed twice" : ""}${status === undefined ? ", reply lost" : ""}`;
  return executed.slice((executed.length / times) * (times - 1)).map(({ command, reply, billed }) => {
    return row(command, times * billed, `${resultOf(wordsOf(command), command, reply)}${note}`);
  });
}
