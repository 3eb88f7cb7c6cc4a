import type { Ask } from "../endpoints/ask.ts";
import type { Command, Endpoint } from "../endpoints/endpoint.ts";
import type { EndpointError } from "../errors/errors.ts";
import { cellScript } from "./cell.lua.ts";
import { foreignData, runScript, unexpectedReply } from "./script.ts";

// A cell on one endpoint: values with a ttl, at one key or at several together. Locks and the records of idempotent runs
// are claimed, kept and ended by these operations. Each is one command, and a second execution of it does no harm. Only a claim
// takes two, where an endpoint has refused a native delete. A cell of one key without a tombstone is plain: if the endpoint has
// a native command for it, that is used. The script does all else.

/** Where values are stored, or are to be stored. */
export interface Cell {
  /** One key, or several that are claimed all together or not at all. */
  readonly keys: readonly string[];
  /**
   * The value at each key, which nobody else has. Begins with a letter, so that no client in between parses it as JSON or a
   * number.
   */
  readonly value: string;
  /** The value at each key, if they differ: a run has a record and locks. */
  readonly values?: readonly string[];
  /** Key that remembers that the claim has ended, so that a late request for it is refused. */
  readonly tombstone?: string | undefined;
  /** The counters from which a claim draws its fence, and which an extension raises. They need a tombstone. */
  readonly counters?: Counters | undefined;
}

/** The counters of a fence. */
export interface Counters {
  readonly keys: readonly string[];
  /** The lowest fence to draw. */
  readonly least: number;
  /** For how many ms the counters outlive the moment that the fence names. */
  readonly retention: number;
}

/** The result of an operation. */
export interface CellAnswer {
  readonly outcome: "granted" | "held" | "lost";
  /** The fence drawn, where there are counters. */
  readonly fence?: number | undefined;
  /** ms until the value in the way expires, where the endpoint returned it. */
  readonly retryAfter?: number | undefined;
  /** The value that was found instead, where the endpoint returned it. */
  readonly other?: string | undefined;
  /** The index of the first key without its value, if that is not the first key. */
  readonly blockedBy?: number | undefined;
}

/** How long a tombstone is kept, in ms. No proxy and no platform holds a request up for longer after its sender has given up. */
export const tombstoneRetention = 60_000;

const granted: CellAnswer = { outcome: "granted" };

/** By endpoint: whether it has deleted as a release does. False: it has refused that. Without an entry it is not known. */
export const canDelete: WeakMap<Endpoint, boolean> = new WeakMap();

/** Claims the cell if it is empty. The script grants it, too, if it has these values already. */
export function claim(ask: Ask, cell: Cell, ttl: number): Promise<CellAnswer> {
  const isReleasable = hasRelease(ask);
  if (!isPlain(ask, cell) || !(isReleasable || compares(ask))) return claimByScript(ask, cell, ttl);
  const command = ["SET", cell.keys[0]!, firstValueOf(cell), "NX", "PX", ttl];
  const set = () => sendNative(ask, command, ["OK", null], "held");
  return isReleasable ? set() : proveRelease(ask, cell).then(set);
}

/** Claims the cell, and always returns the value in the way. Its own value grants it, unlike with {@link claim}. */
export async function claimOrRead(ask: Ask, cell: Cell, ttl: number): Promise<CellAnswer> {
  // Redis knows NX together with GET from 7.0 on: servers that compare natively are later.
  if (!isPlain(ask, cell) || !compares(ask)) return claimByScript(ask, cell, ttl);
  if (!hasRelease(ask)) await proveRelease(ask, cell);
  const own = firstValueOf(cell);
  const other = await ask.send(["SET", cell.keys[0]!, own, "NX", "GET", "PX", ttl]);
  if (other !== null && typeof other !== "string") throw unexpectedReply();
  // Its own value is from an earlier execution whose reply was lost.
  return other === null || other === own ? granted : { outcome: "held", other };
}

/** Deletes a key that is not there yet, natively: at an endpoint that has refused to before. */
async function proveRelease(ask: Ask, cell: Cell): Promise<void> {
  await end(ask, cell);
  canDelete.set(ask.endpoint, true);
}

/** Claims by script, which also deletes if the endpoint has not shown yet that it does that: see `prove` in cell.lua. */
async function claimByScript(ask: Ask, cell: Cell, ttl: number): Promise<CellAnswer> {
  const words = valuesOf(cell).flatMap((value) => ["", value]);
  if (hasRelease(ask)) return operate(ask, cell, { operation: "claim", ttl, words });
  // A cell without a tombstone names a key that nobody ever writes.
  const { tombstone = `${cell.keys[0]}:${cell.value}` } = cell;
  const answer = await operate(ask, { ...cell, tombstone }, { operation: "prove", ttl, words });
  canDelete.set(ask.endpoint, true);
  return answer;
}

/**
 * Gives the cell a new ttl, and raises its counters. Never creates it. ttl 0 writes no value.
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
 * Ends a claim: deletes its values, and leaves the tombstone.
 *
 * @param next what replaces the first values, by key, and its ttl. Default: all are deleted
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

/**
 * Remembers that the endpoint refuses a command that a release needs: nothing is claimed there until it has shown the contrary.
 */
function notingRefusal(ask: Ask, ending: Promise<CellAnswer>): Promise<CellAnswer> {
  return ending.catch((error: unknown) => {
    if ((error as Partial<EndpointError>).permanent) canDelete.set(ask.endpoint, false);
    throw error;
  });
}

/** The script's operation. `words`: for each key, the expected value, and the next one. `""` stands for nothing. */
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
  // The token shows that the script has run. The found value is not quoted, because a client in between may have put it there.
  const fence = readCounter(reply[1]);
  if (!fence) throw new Error(foreignData(counters.keys));
  return { outcome: "granted", fence };
}

/** The answer of an `end`. `hits`: for each key, whether it had the expected value. */
function endAnswer(hits: unknown, count: number): CellAnswer {
  if (typeof hits !== "string" || hits.length !== count || !/^[tf]+$/.test(hits)) throw unexpectedReply();
  const miss = hits.indexOf("f");
  return miss < 0 ? granted : { outcome: "lost", ...atKey(miss) };
}

/** The answer of a refusal. An endpoint whose reply has another form is faulty, and not held by someone. */
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

/** Whether these can be a key's value and the ms until it expires, as a script returns them. */
export function isSnapshot({ endpoint }: Ask, value: unknown, remaining: unknown): boolean {
  // A client in between may have parsed the value. Nothing else turns text into another type.
  return Number.isSafeInteger(remaining) && (typeof value === "string" || !endpoint.exactReplies);
}

/** A counter as a script prints it, or a client in between has parsed it. Undefined: it is no counter. */
export function readCounter(word: unknown): number | undefined {
  const count = typeof word !== "object" && /^\d+$/.test(String(word)) ? Number(word) : 0;
  return count > 0 && Number.isSafeInteger(count) ? count : undefined;
}

/** Sends a native command with two possible replies. `refused`: the outcome of a no. */
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

/** Whether a native command is enough, where the endpoint has one, and its reply can be trusted. */
function isPlain({ endpoint }: Ask, { keys, tombstone }: Cell): boolean {
  return endpoint.exactReplies === true && keys.length === 1 && !tombstone;
}

/** The value at the first key. */
function firstValueOf({ value, values }: Cell): string {
  return values?.[0] ?? value;
}

/** The value at each key. */
function valuesOf({ keys, value, values }: Cell): readonly string[] {
  return values ?? keys.map(() => value);
}

/** Whether the endpoint has commands that compare and set or delete, and their replies can be trusted. */
function compares({ endpoint }: Ask): boolean {
  return endpoint.dialect !== "redis" && endpoint.exactReplies === true;
}

/**
 * Whether the endpoint deletes as a release does: a lock that can never be released must not be acquired. One that compares is
 * trusted until it refuses, any other one must show it first.
 */
function hasRelease(ask: Ask): boolean {
  return canDelete.get(ask.endpoint) ?? compares(ask);
}
