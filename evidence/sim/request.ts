import type { Command } from "../../src/endpoints/endpoint.ts";
import { freeScript } from "../../src/lock/free.lua.ts";
import { claimScript } from "../../src/redis/claim.lua.ts";
import { peekScript } from "../../src/redis/peek.lua.ts";
import type { Script } from "../../src/redis/script.ts";
import { debounceScript } from "../../src/sync/debounce.lua.ts";
import { arrivalScript } from "../../src/sync/internal/arrival.lua.ts";
import { intervalScript } from "../../src/sync/internal/interval.lua.ts";
import { memberScript } from "../../src/sync/internal/member.lua.ts";
import { queueScript } from "../../src/sync/internal/queue.lua.ts";
import { slotScript } from "../../src/sync/internal/slot.lua.ts";

/** A command of the library, parsed. */
export interface Request {
  readonly operation: "acquire" | "restore" | "extend" | "release" | "free" | "peek" | "announce";
  readonly keys: readonly string[];
  /** The whole value, or the pending record. */
  readonly value: string;
  /** Where the comparison of values begins. */
  readonly from: number;
  readonly tombstone: string | undefined;
  /** Only raises the fence counters; the value is left as it is. */
  readonly raises: boolean;
  /** ms for which the value is to stand; of cells and announcements only. */
  readonly ttl?: number;
  /** The value is a member of a set. */
  readonly isMember?: boolean;
  /** The key and name under which a waiting writer is announced, if this announces one. */
  readonly announces?: { readonly key: string; readonly id: string } | undefined;
  /** The value is a count of runs. `written`: the one that replaces it. */
  readonly isCount?: boolean;
  readonly written?: string;
  /** The counter that is read beside the first key. */
  readonly counter?: string | undefined;
  /** A further key that the request depends on. */
  readonly about?: string;
  /** The name of what it is about. Default: the nonce in the value. */
  readonly id?: string;
  /** What the same command does with the locks of a run; the rest is about its record. */
  readonly locks?: Request;
  /** What stands in the place of the value when a lock that was handed over is taken over, or that is undone. */
  readonly successor?: Request;
  /** The record that the end of a run with locks writes; "": it deletes the pending one. */
  readonly next?: string;
}

/** Parses a command. Simulations check the library by what it sends, not by its internal state. */
export function readRequest(command: Command): Request {
  const words = command.map(String);
  const name = words[0]!;
  if (name === "SET") {
    const operation = words.includes("IFEQ") ? "extend" : "acquire";
    // An acquire carries its value; an extension compares with the value that it replaces.
    const value = operation === "acquire" ? words[2]! : words[words.indexOf("IFEQ") + 1]!;
    const ttl = Number(words[words.indexOf("PX") + 1]);
    const request = requestOf(operation, [words[1]!], value, { ttl });
    return countOf(withSuccessor(request, words[2]!), words[2]!);
  }
  if (name === "DELEX") {
    return countOf(requestOf("release", [words[1]!], words[words.indexOf("IFEQ") + 1]!));
  }
  if (name !== "EVALSHA" && name !== "EVAL") throw new Error(`the library sent an unknown command: ${name}`);
  const count = Number(words[2]);
  const names = words.slice(3, 3 + count);
  const args = words.slice(3 + count);
  const read = readers.find(([script]) => isScript(words[1]!, script))?.[1] ?? readCell;
  return read(names, args);
}

/** A request that compares whole values, and leaves no tombstone. */
function requestOf(
  operation: Request["operation"],
  keys: readonly string[],
  value: string,
  more: Partial<Request> = {},
): Request {
  return { operation, keys, value, from: 1, tombstone: undefined, raises: false, ...more };
}

function readCell(names: string[], args: string[]): Request {
  const [operation, value = "", from, keyCount, ttl, next] = args;
  const request: Request = {
    operation: operation as Request["operation"],
    keys: names.slice(0, Number(keyCount)),
    value,
    from: Number(from),
    tombstone: names[Number(keyCount)],
    raises: operation === "extend" && ttl === "0" && names.length > Number(keyCount),
    ttl: Number(ttl),
  };
  return countOf(withSuccessor(request, next), next);
}

/** The same request, with what it puts in the place of a lock's nonce, if it does. */
function withSuccessor(request: Request, next = ""): Request {
  const { operation, value, from } = request;
  const isNonce = (text: string) => /^t[0-9a-f]{32}$/.test(text);
  if (operation !== "extend" || from !== 1 || next === value || !isNonce(next) || !isNonce(value))
    return request;
  return { ...request, successor: { ...request, operation: "acquire", value: next } };
}

/** The same request, marked where it is about a count of runs. */
function countOf(request: Request, written?: string): Request {
  if (!request.value.startsWith("A1 ")) return request;
  return written === undefined ? { ...request, isCount: true } : { ...request, isCount: true, written };
}

/** Whether a command's hash or text is that of a script. */
function isScript(text: string, { source, sha }: Script): boolean {
  return text === sha.redis || text === sha.upstash || text.endsWith(source);
}

/** The claim of a key and locks, in two: the record and the locks. */
function readClaim([record = "", ...names]: string[], args: string[]): Request {
  const [op, value = "", token = "", count, ttl, next = ""] = args;
  const both = { raises: op === "extend" && ttl === "0", ttl: Number(ttl) };
  const operation = op === "begin" ? "acquire" : op === "extend" ? "extend" : "release";
  const keys = names.slice(0, Number(count));
  const locks = requestOf(operation, keys, token, { ...both, id: lockIdOf(token) });
  // As where the key alone was claimed: its result extends the record.
  const replaces = op === "end" && next !== "";
  const end = op === "end" ? { next } : {};
  return requestOf(replaces ? "extend" : operation, [record], value, { ...both, locks, ...end });
}

/** The name of the locks of a run. The record goes by the token alone. */
export function lockIdOf(token: string): string {
  return `locks of ${token}`;
}

function readSlots([limit, ...slots]: string[], [value = "", , , span]: string[]): Request {
  const operation = span === "0" ? "extend" : "acquire";
  const keys = span === "0" ? slots : slots.slice(0, Number(span));
  return requestOf(operation, keys, value, { about: limit! });
}

function readMember(names: string[], args: string[]): Request {
  const [key, tombstone] = names;
  const [operation, value = "", , , tombstones, id] = args;
  // A member is compared as a whole, also where others of its group may stand beside it.
  return requestOf(operation as Request["operation"], [key!], value, {
    tombstone: tombstones === "0" ? undefined : tombstone,
    isMember: true,
    // The announcements come last.
    announces: operation === "acquire" && id ? { key: names.at(-1)!, id } : undefined,
  });
}

function readTicket(names: string[], [value = "", text = "", , ttl]: string[]): Request {
  const [lock, , ...tombstones] = names;
  const operation = ttl === "0" ? "release" : "acquire";
  // The release of a holder, which tells those that wait.
  if (text === "") return requestOf(operation, [lock!], value, { tombstone: tombstones[0] });
  return requestOf(operation, [lock!], value, { tombstone: tombstones[1] });
}

/** By script. Arrivals and announcements acquire nothing: they stay, or stand until a later one replaces them. */
const readers: readonly (readonly [Script, (names: string[], args: string[]) => Request])[] = [
  [peekScript, ([key, counter]) => requestOf("peek", [key!], "", { counter })],
  [freeScript, (keys, [, value = ""]) => requestOf("free", keys, value)],
  [claimScript, readClaim],
  [slotScript, readSlots],
  [memberScript, readMember],
  [arrivalScript, (keys, [value = ""]) => requestOf("peek", keys, value)],
  [queueScript, readTicket],
  [
    intervalScript,
    ([key, , , tombstone], [value = "", operation]) =>
      requestOf(operation as Request["operation"], [key!], value, { tombstone }),
  ],
  [debounceScript, (keys, [value = "", ttl]) => requestOf("announce", keys, value, { ttl: Number(ttl) })],
];

/** The name of what a request is about. */
export function idOf({ id, value }: Request): string {
  return id ?? nonceOf(value);
}

/** The part of a value that differs in every round: a lock's nonce, or a run's token. */
export function nonceOf(value: string): string {
  const record = /^[PCN]1 (\S+) /.exec(value);
  return record ? record[1]! : value.slice(0, 33);
}

/** Whether a command stores the record of an idempotent run that has ended. Called for every request. */
export function isCompletion(command: Command): boolean {
  return command.some((word) => typeof word === "string" && /^[CN]1 /.test(word));
}
