import type { Ask } from "../endpoints/ask.ts";
import type { Command, Endpoint } from "../endpoints/endpoint.ts";
import type { EndpointError } from "../errors/errors.ts";
import { cellScript } from "./cell.lua.ts";
import { foreignData, runScript, unexpectedReply } from "./script.ts";

// A cell on one endpoint: values with a ttl, at one key or at several together. Each operation is one command that may
// be executed twice, but a claim takes two if the endpoint has refused a native delete. A cell with one key and no
// tombstone uses native commands if the endpoint has them.

export interface Cell {
  /** Claimed together or not at all. */
  readonly keys: readonly string[];
  /** Unique. It begins with a letter, so that no client in between parses it as JSON or a number. */
  readonly value: string;
  /** For each key, if they differ: a run has a record and locks. */
  readonly values?: readonly string[];
  /** Late requests for the claim are refused. */
  readonly tombstone?: string | undefined;
  /** A claim draws its fence from them. They need a tombstone. */
  readonly counters?: Counters | undefined;
}

export interface Counters {
  readonly keys: readonly string[];
  /** The lowest fence to draw. */
  readonly least: number;
  /** ms for which the counters outlive the moment that the fence names. */
  readonly retention: number;
}

export interface CellAnswer {
  readonly outcome: "granted" | "held" | "lost";
  readonly fence?: number | undefined;
  /** ms until the value in the way expires, if the endpoint returned it. */
  readonly retryAfter?: number | undefined;
  /** The value in the way, if the endpoint returned it. */
  readonly other?: string | undefined;
  /** Unless the first key is in the way. */
  readonly blockedBy?: number | undefined;
}

/** In ms. No proxy or platform delays a request for longer after its sender has given up. */
export const tombstoneRetention = 60_000;

const granted: CellAnswer = { outcome: "granted" };

/** False: the endpoint has refused to delete. No entry: not known. */
export const canDelete: WeakMap<Endpoint, boolean> = new WeakMap();

/** The script also grants a cell that has these values already. */
export function claim(ask: Ask, cell: Cell, ttl: number): Promise<CellAnswer> {
  const isReleasable = hasRelease(ask);
  if (!isPlain(ask, cell) || !(isReleasable || compares(ask))) return claimByScript(ask, cell, ttl);
  const command = ["SET", cell.keys[0]!, firstValueOf(cell), "NX", "PX", ttl];
  const set = () => sendNative(ask, command, ["OK", null], "held");
  return isReleasable ? set() : proveRelease(ask, cell).then(set);
}

/** Returns the value in the way. Its own value grants it. */
export async function claimOrRead(ask: Ask, cell: Cell, ttl: number): Promise<CellAnswer> {
  // NX with GET needs Redis 7.0, which is earlier than native comparison.
  if (!isPlain(ask, cell) || !compares(ask)) return claimByScript(ask, cell, ttl);
  if (!hasRelease(ask)) await proveRelease(ask, cell);
  const own = firstValueOf(cell);
  const other = await ask.send(["SET", cell.keys[0]!, own, "NX", "GET", "PX", ttl]);
  if (other !== null && typeof other !== "string") throw unexpectedReply();
  // From an earlier execution whose reply was lost.
  return other === null || other === own ? granted : { outcome: "held", other };
}

/** Deletes a missing key, at an endpoint that has refused to delete. */
async function proveRelease(ask: Ask, cell: Cell): Promise<void> {
  await end(ask, cell);
  canDelete.set(ask.endpoint, true);
}

/** Also deletes if the endpoint has not shown that it can: see `prove` in cell.lua. */
async function claimByScript(ask: Ask, cell: Cell, ttl: number): Promise<CellAnswer> {
  const words = valuesOf(cell).flatMap((value) => ["", value]);
  if (hasRelease(ask)) return operate(ask, cell, { operation: "claim", ttl, words });
  const { tombstone = `${cell.keys[0]}:${cell.value}` } = cell;
  const answer = await operate(ask, { ...cell, tombstone }, { operation: "prove", ttl, words });
  canDelete.set(ask.endpoint, true);
  return answer;
}

/**
 * Never creates the cell. ttl 0 writes no value.
 *
 * @param next the value to write at each key. Default: the present value
 */
export function keep(ask: Ask, cell: Cell, ttl: number, next?: string): Promise<CellAnswer> {
  if (isPlain(ask, cell) && compares(ask) && ttl > 0) {
    const own = firstValueOf(cell);
    return sendNative(ask, ["SET", cell.keys[0]!, next ?? own, "IFEQ", own, "PX", ttl], ["OK", null], "lost");
  }
  const words = valuesOf(cell).flatMap((own) => [own, next ?? own]);
  return operate(ask, cell, { operation: "keep", ttl, words });
}

/**
 * Leaves the tombstone.
 *
 * @param next replaces the first values. Default: all are deleted
 */
export function end(
  ask: Ask,
  cell: Cell,
  next?: { readonly values: readonly string[]; readonly ttl: number },
): Promise<CellAnswer> {
  if (isPlain(ask, cell) && compares(ask)) {
    if (next) return keep(ask, cell, next.ttl, next.values[0]);
    const command = ["DELEX", cell.keys[0]!, "IFEQ", firstValueOf(cell)];
    return notingRefusal(ask, sendNative(ask, command, [1, 0], "lost"));
  }
  const words = valuesOf(cell).flatMap((own, index) => [own, next?.values[index] ?? ""]);
  return notingRefusal(ask, operate(ask, cell, { operation: "end", ttl: next?.ttl ?? 0, words }));
}

/** Nothing is claimed at an endpoint that refuses to release. */
function notingRefusal(ask: Ask, ending: Promise<CellAnswer>): Promise<CellAnswer> {
  return ending.catch((error: unknown) => {
    if ((error as Partial<EndpointError>).permanent) canDelete.set(ask.endpoint, false);
    throw error;
  });
}

/** `words`: for each key, the expected value and the next one, `""` for none. */
interface Change {
  readonly operation: "claim" | "prove" | "keep" | "end";
  readonly ttl: number;
  readonly words: readonly string[];
}

async function operate(ask: Ask, cell: Cell, { operation, ttl, words }: Change): Promise<CellAnswer> {
  const { keys, value, tombstone, counters } = cell;
  const names = tombstone ? [...keys, tombstone, ...(counters?.keys ?? [])] : keys;
  const { least, retention } = counters ?? { least: 0, retention: 0 };
  const head = [operation, value, keys.length, ttl, tombstoneRetention, least, retention];
  const reply = await runScript(ask, cellScript, names, [...head, ...words]);
  if (!Array.isArray(reply)) throw unexpectedReply();
  if (reply[0] !== value) return refusal(ask, operation, reply, keys.length);
  if (operation === "end") return endAnswer(reply[1], keys.length);
  if (!counters) return granted;
  // The found value is not quoted, because a client in between may have written it.
  const fence = readCounter(reply[1]);
  if (!fence) throw new Error(foreignData(counters.keys));
  return { outcome: "granted", fence };
}

/** `hits`: for each key, whether it had the expected value. */
function endAnswer(hits: unknown, count: number): CellAnswer {
  if (typeof hits !== "string" || hits.length !== count || !/^[tf]+$/.test(hits)) throw unexpectedReply();
  const miss = hits.indexOf("f");
  return miss < 0 ? granted : { outcome: "lost", ...atKey(miss) };
}

/** A faulty endpoint must not look as if someone held it. */
function refusal(
  ask: Ask,
  operation: Change["operation"],
  reply: readonly unknown[],
  count: number,
): CellAnswer {
  const [no, position, remaining, other] = reply;
  const isKey = Number.isSafeInteger(position) && Number(position) >= 0 && Number(position) <= count;
  if (no !== 0 || operation === "end" || !isKey || !isSnapshot(ask, other, remaining))
    throw unexpectedReply();
  if (operation === "keep") return { outcome: "lost", other: String(other) };
  const found = { retryAfter: Number(remaining), other: String(other) };
  return { outcome: "held", ...found, ...atKey(Number(position) - 1) };
}

function atKey(index: number): Pick<CellAnswer, "blockedBy"> {
  return index > 0 ? { blockedBy: index } : {};
}

export function isSnapshot({ endpoint }: Ask, value: unknown, remaining: unknown): boolean {
  return Number.isSafeInteger(remaining) && (typeof value === "string" || !endpoint.exactReplies);
}

/** A client in between may have parsed it. */
export function readCounter(word: unknown): number | undefined {
  const count = typeof word !== "object" && /^\d+$/.test(String(word)) ? Number(word) : 0;
  return count > 0 && Number.isSafeInteger(count) ? count : undefined;
}

function sendNative(
  ask: Ask,
  command: Command,
  [yes, no]: readonly [unknown, unknown],
  refused: "held" | "lost",
): Promise<CellAnswer> {
  return ask.send(command).then((reply) => {
    if (reply === yes) return granted;
    if (reply === no) return { outcome: refused };
    throw unexpectedReply();
  });
}

function isPlain({ endpoint }: Ask, { keys, tombstone }: Cell): boolean {
  return endpoint.exactReplies === true && keys.length === 1 && !tombstone;
}

function firstValueOf({ value, values }: Cell): string {
  return values?.[0] ?? value;
}

function valuesOf({ keys, value, values }: Cell): readonly string[] {
  return values ?? keys.map(() => value);
}

function compares({ endpoint }: Ask): boolean {
  return endpoint.dialect !== "redis" && endpoint.exactReplies === true;
}

/** A lock that can never be released must not be acquired. An endpoint that compares is trusted until it refuses. */
function hasRelease(ask: Ask): boolean {
  return canDelete.get(ask.endpoint) ?? compares(ask);
}
