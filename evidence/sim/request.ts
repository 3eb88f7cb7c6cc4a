import type { Command } from "../../src/endpoints/endpoint.ts";
import { freeScript } from "../../src/lock/free.lua.ts";
import { peekScript } from "../../src/redis/peek.lua.ts";
import type { Script } from "../../src/redis/script.ts";
import { arrivalScript } from "../../src/sync/internal/arrival.lua.ts";
import { intervalScript } from "../../src/sync/internal/interval.lua.ts";
import { memberScript } from "../../src/sync/internal/member.lua.ts";
import { newestScript } from "../../src/sync/internal/newest.lua.ts";
import { queueScript } from "../../src/sync/internal/queue.lua.ts";
import { slotScript } from "../../src/sync/internal/slot.lua.ts";

/** A command of the library, parsed. */
export interface Request {
  /** As cell.lua calls it, also where a native command or the script of a synchronizer does it. */
  readonly operation: "claim" | "restore" | "keep" | "end" | "free" | "peek" | "announce";
  readonly keys: readonly string[];
  /** The whole value, or the pending record. Of a run with locks the value of its locks. */
  readonly value: string;
  /** By key: what is claimed, or expected there. Only the record of a run with locks differs from `value`. */
  readonly own: readonly string[];
  /** By key, of cells: what a `keep` or an `end` writes there; "": it is deleted. */
  readonly next?: readonly string[];
  readonly tombstone: string | undefined;
  /** The fence counters, of cells. */
  readonly counters?: readonly string[];
  /** Only raises the fence counters; the value is left as it is. */
  readonly raises: boolean;
  /** ms for which the value is to stand; of cells and announcements only. */
  readonly ttl?: number;
  /** The value is a member of a set. */
  readonly isMember?: boolean;
  /** The key and name under which a waiting writer is announced, if this announces one. */
  readonly announces?: { readonly key: string; readonly id: string } | undefined;
  /** The counter that is read beside the first key. */
  readonly counter?: string | undefined;
  /** A further key that the request depends on. */
  readonly about?: string;
}

/** Parses a command. Simulations check the library by what it sends, not by its internal state. */
export function readRequest(command: Command): Request {
  const words = command.map(String);
  const [name, key = "", text = ""] = words;
  const expected = words[words.indexOf("IFEQ") + 1]!;
  const ttl = Number(words[words.indexOf("PX") + 1]);
  if (name === "SET" && words.includes("IFEQ"))
    return requestOf("keep", [key], expected, { ttl, next: [text] });
  if (name === "SET") return requestOf("claim", [key], text, { ttl, next: [text] });
  if (name === "DELEX") return requestOf("end", [key], expected, { next: [""] });
  if (name !== "EVALSHA" && name !== "EVAL") throw new Error(`the library sent an unknown command: ${name}`);
  const count = Number(words[2]);
  const names = words.slice(3, 3 + count);
  const args = words.slice(3 + count);
  const read = readers.find(([script]) => isScript(key, script))?.[1] ?? readCell;
  return read(names, args);
}

/** A request about one value at all its keys. */
function requestOf(
  operation: Request["operation"],
  keys: readonly string[],
  value: string,
  more: Partial<Request> = {},
): Request {
  const own = keys.map(() => value);
  return { operation, keys, value, own, tombstone: undefined, raises: false, ...more };
}

/** What cell.lua gets, also as a part of another script. */
function readCell(names: string[], args: string[]): Request {
  const [operation, token = "", count, ttl] = args;
  const n = Number(count);
  const keys = names.slice(0, n);
  const pairs = args.slice(7, 7 + 2 * n);
  const next = keys.map((_, index) => pairs[2 * index + 1]!);
  const isExpected = operation === "keep" || operation === "end";
  return requestOf(operation as Request["operation"], keys, token, {
    own: isExpected ? keys.map((_, index) => pairs[2 * index]!) : next,
    next,
    tombstone: names[n],
    counters: names.slice(n + 1),
    raises: operation === "keep" && ttl === "0" && names.length > n,
    ttl: Number(ttl),
  });
}

/** What a lock that is handed over has from now on, where a request puts it in the place of its nonce. */
export function successorOf({ next, ...request }: Request): Request | undefined {
  const value = next?.[0];
  if (request.operation !== "keep" || !value || nonceOf(value) === nonceOf(request.value)) return undefined;
  return { ...request, value, own: request.keys.map(() => value) };
}

/** Whether a request is about the count of a key's runs. */
export function isCount({ value }: Request): boolean {
  return value.startsWith("A1 ");
}

/** Whether a command's hash or text is that of a script. */
function isScript(text: string, { source, sha }: Script): boolean {
  return text === sha.redis || text === sha.upstash || text.endsWith(source);
}

function readSlots([limit, ...slots]: string[], [value = "", , , span]: string[]): Request {
  const operation = span === "0" ? "keep" : "claim";
  const keys = span === "0" ? slots : slots.slice(0, Number(span));
  return requestOf(operation, keys, value, { about: limit! });
}

/** What the scripts of synchronizers call it. */
const operations: Readonly<Record<string, Request["operation"]>> = {
  acquire: "claim",
  extend: "keep",
  release: "end",
};

function readMember(names: string[], args: string[]): Request {
  const [key, tombstone] = names;
  const [operation = "", value = "", , , tombstones, id] = args;
  return requestOf(operations[operation]!, [key!], value, {
    tombstone: tombstones === "0" ? undefined : tombstone,
    isMember: true,
    // The announcements come last.
    announces: operation === "acquire" && id ? { key: names.at(-1)!, id } : undefined,
  });
}

function readTicket(names: string[], [value = "", text = "", , ttl]: string[]): Request {
  const [lock, , ...tombstones] = names;
  const operation = ttl === "0" ? "end" : "claim";
  // The release of a holder, which tells those that wait.
  if (text === "") return requestOf(operation, [lock!], value, { tombstone: tombstones[0] });
  return requestOf(operation, [lock!], value, { tombstone: tombstones[1] });
}

/** By script. Arrivals and announcements acquire nothing: they stay, or stand until a later one replaces them. */
const readers: readonly (readonly [Script, (names: string[], args: string[]) => Request])[] = [
  [peekScript, ([key, counter]) => requestOf("peek", [key!], "", { counter })],
  [freeScript, (keys, [, value = ""]) => requestOf("free", keys, value)],
  [slotScript, readSlots],
  [memberScript, readMember],
  [arrivalScript, (keys, [value = ""]) => requestOf("peek", keys, value)],
  [queueScript, readTicket],
  [
    intervalScript,
    ([key, , , tombstone], [value = "", operation = ""]) =>
      requestOf(operations[operation]!, [key!], value, { tombstone }),
  ],
  [newestScript, (keys, [value = "", ttl]) => requestOf("announce", keys, value, { ttl: Number(ttl) })],
];

/** The part of a value that differs in every round: a lock's nonce, or a run's token. */
export function nonceOf(value: string): string {
  const record = /^[PCN]1 (\S+) /.exec(value);
  return record ? record[1]! : value.slice(0, 33);
}

/** Whether a command stores the record of an idempotent run that has ended. Called for every request. */
export function isCompletion(command: Command): boolean {
  return command.some((word) => typeof word === "string" && /^[CN]1 /.test(word));
}
