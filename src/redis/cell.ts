import type { Ask } from "../endpoints/ask.ts";
import type { Command, Endpoint } from "../endpoints/endpoint.ts";
import type { EndpointError } from "../errors.ts";
import { cellScript } from "./cell.lua.ts";
import { runScript, unexpectedReply } from "./script.ts";

// A cell on one endpoint: values with a ttl, at one key or at several together. Locks and the records of idempotent runs
// are claimed, kept and ended by these operations. Each is one request, and a second execution of it does no harm. A cell of
// one key without a tombstone is plain: a native command does it, where the endpoint has one. All else is done by the script.

/** Where values are stored, or are to be stored. */
export interface Cell {
  /** One key, or several that are claimed all together or not at all. */
  readonly keys: readonly string[];
  /**
   * The value at each key, which nobody else has. Begins with a letter, so that no client in between parses it as JSON or a
   * number.
   */
  readonly value: string;
  /** The value at the first key, where it is another one: the record of a run, whose locks are the other keys. */
  readonly record?: string | undefined;
  /** Key that remembers that the claim has ended, so that a late request for it is refused. */
  readonly tombstone?: string | undefined;
  /** Counters from which a fence is drawn. They need a tombstone. */
  readonly counters?: readonly string[] | undefined;
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
  /** The index of the key where it was found, where that is not the first. */
  readonly blockedBy?: number | undefined;
}

/** The lowest fence to draw, and for how many ms its counters outlive the moment that the fence names. */
export interface CounterTerms {
  readonly least: number;
  readonly retention: number;
}

const granted: CellAnswer = { outcome: "granted" };

/** What has been learnt of an endpoint. */
interface Learnt {
  /** Whether it has deleted as a release does. False: it has refused that. Undefined: not known. */
  releases?: boolean;
  /** Whether it has shown that it does not know NX together with GET. */
  lacksNxGet?: boolean;
  /** Whether it has returned a value in the way, as a gateway that answers null to everything does not. */
  returnsValues?: boolean;
}

const learnt = new WeakMap<Endpoint, Learnt>();

/** What has been learnt of an endpoint. */
export function serverOf(endpoint: Endpoint): Learnt {
  const known = learnt.get(endpoint) ?? {};
  learnt.set(endpoint, known);
  return known;
}

/** Claims the cell if it is empty; by script, also if it has these values already. */
export function claim(ask: Ask, cell: Cell, ttl: number, terms?: CounterTerms): Promise<CellAnswer> {
  if (!isClaimedNatively(ask, cell)) return claimByScript(ask, cell, ttl, terms);
  const proof = proveRelease(ask, cell);
  return proof ? proof.then(() => setIfEmpty(ask, cell, ttl)) : setIfEmpty(ask, cell, ttl);
}

/** Deletes natively what is not there yet, where the endpoint has refused that before. Undefined: it has not. */
function proveRelease(ask: Ask, cell: Cell): Promise<void> | undefined {
  const server = serverOf(ask.endpoint);
  if (server.releases !== false) return undefined;
  return end(ask, cell).then(() => {
    server.releases = true;
  });
}

/** Claims by script, which also deletes if the endpoint has not shown yet that it does that: see `prove` in cell.lua. */
async function claimByScript(ask: Ask, cell: Cell, ttl: number, terms?: CounterTerms): Promise<CellAnswer> {
  const server = serverOf(ask.endpoint);
  const isProven = hasCompareAndSet(ask) ? server.releases !== false : server.releases;
  if (isProven) return operate(ask, "claim", cell, { ttl, terms });
  // A cell without a tombstone names a key that nobody ever writes.
  const { tombstone = `${cell.keys[0]}:${cell.value}` } = cell;
  const answer = await operate(ask, "prove", { ...cell, tombstone }, { ttl, terms });
  server.releases = true;
  return answer;
}

function setIfEmpty(ask: Ask, { keys, value }: Cell, ttl: number): Promise<CellAnswer> {
  return sendPlain(ask, ["SET", keys[0]!, value, "NX", "PX", ttl], ["OK", null], "held");
}

/** Claims the cell, and always returns the value in the way. Its own value grants it, unlike with {@link claim}. */
export async function claimOrRead(ask: Ask, cell: Cell, ttl: number): Promise<CellAnswer> {
  const { keys, value } = cell;
  // Redis knows NX together with GET from 7.0 on: servers that compare natively are later.
  if (!comparesNatively(ask, cell)) return claimByScript(ask, cell, ttl);
  await proveRelease(ask, cell);
  const other = await ask.send(["SET", keys[0]!, value, "NX", "GET", "PX", ttl]);
  if (other !== null && typeof other !== "string") throw unexpectedReply();
  // Its own value is from an earlier execution whose reply was lost.
  return other === null || other === value ? granted : { outcome: "held", other };
}

/** What {@link keep} does beside checking that the cell is still there. */
export interface KeepDetails {
  /** The value to write at each key. Default: what is there. */
  readonly next?: string | undefined;
  /** Raises the counters to its lowest fence. */
  readonly terms?: CounterTerms | undefined;
}

/** Gives the cell a new ttl, and a new value if `next` is given. Never creates it. ttl 0 writes no value. */
export function keep(
  ask: Ask,
  cell: Cell,
  ttl: number,
  { next, terms }: KeepDetails = {},
): Promise<CellAnswer> {
  const { keys, value } = cell;
  if (comparesNatively(ask, cell) && ttl > 0 && !terms) {
    const command = ["SET", keys[0]!, next ?? value, "IFEQ", value, "PX", ttl];
    return sendPlain(ask, command, ["OK", null], "lost");
  }
  return operate(ask, "keep", cell, { ttl, next, terms });
}

/** What {@link end} leaves. */
export interface EndDetails {
  /** What replaces the record, or each value where there is no record, and its ttl. Default: all values are deleted. */
  readonly next?: { readonly text: string; readonly ttl: number } | undefined;
  /** ttl of the tombstone, where the cell has one, in ms. Default 0. */
  readonly tombstoneTtl?: number;
}

/** Ends a claim: deletes its values, or replaces them. Where a run has locks, the answer is about its record alone. */
export function end(ask: Ask, cell: Cell, details: EndDetails = {}): Promise<CellAnswer> {
  const { keys, value } = cell;
  if (comparesNatively(ask, cell) && !details.next) {
    return notingRefusal(ask, sendPlain(ask, ["DELEX", keys[0]!, "IFEQ", value], [1, 0], "lost"));
  }
  return endThrough(ask, cell, details);
}

/** Remembers that the endpoint refuses what a release needs: nothing is claimed there until it has shown the contrary. */
function notingRefusal(ask: Ask, ending: Promise<CellAnswer>): Promise<CellAnswer> {
  return ending.catch((error: unknown) => {
    if ((error as Partial<EndpointError>).permanent) serverOf(ask.endpoint).releases = false;
    throw error;
  });
}

/**
 * The same, but always by a script.
 *
 * @param run runs another script, which contains the cell's, and resolves with the reply of the cell's. Default: the cell's
 */
export function endThrough(
  ask: Ask,
  cell: Cell,
  { next, tombstoneTtl = 0 }: EndDetails,
  run?: RunOperation,
): Promise<CellAnswer> {
  const details = { ttl: next?.ttl ?? 0, next: next?.text, tombstoneTtl, run };
  return notingRefusal(ask, operate(ask, "end", cell, details));
}

/** Runs the cell's script with these keys and arguments. */
type RunOperation = (keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>;

type Operation = "claim" | "prove" | "keep" | "end";

/** The arguments of one run of the script. */
interface OperationDetails {
  readonly ttl: number;
  readonly next?: string | undefined;
  readonly tombstoneTtl?: number;
  readonly terms?: CounterTerms | undefined;
  readonly run?: RunOperation | undefined;
}

async function operate(
  ask: Ask,
  operation: Operation,
  cell: Cell,
  {
    ttl,
    next,
    tombstoneTtl = 0,
    terms,
    run = (keys, args) => runScript(ask, cellScript, keys, args),
  }: OperationDetails,
): Promise<CellAnswer> {
  const { keys, value, record = value, tombstone, counters = [] } = cell;
  const own = keys.map((_, index) => (index === 0 ? record : value));
  const following = own.map((text, index) => {
    if (operation !== "end") return next ?? text;
    // Of a run, the record is replaced; its locks are deleted.
    return ((index === 0 || cell.record === undefined) && next) || "";
  });
  const expected = operation === "keep" || operation === "end" ? own : own.map(() => "");
  const names = tombstone ? [...keys, tombstone, ...(terms ? counters : [])] : keys;
  const { least, retention } = terms ?? { least: 0, retention: 0 };
  const head = [operation, value, keys.length, ttl, tombstoneTtl, least, retention];
  const reply = await run(names, [...head, ...expected.flatMap((text, index) => [text, following[index]!])]);
  if (!Array.isArray(reply)) throw unexpectedReply();
  if (reply[0] !== value) return refusal(ask, operation, reply, keys.length);
  if (operation === "end") return ended(reply[1], cell);
  return terms ? { outcome: "granted", fence: readFence(reply[1]) } : granted;
}

/** The answer of an `end`. `hits`: for each key, whether it had the expected value. */
function ended(hits: unknown, { keys, record }: Cell): CellAnswer {
  const isSane = typeof hits === "string" && hits.length === keys.length && /^[tf]+$/.test(hits);
  if (!isSane) throw unexpectedReply();
  const isDone = record === undefined ? !hits.includes("f") : hits.startsWith("t");
  return isDone ? granted : { outcome: "lost" };
}

/** The answer of a refusal. An endpoint whose reply has another form is faulty, and not held by someone. */
function refusal(ask: Ask, operation: Operation, reply: readonly unknown[], count: number): CellAnswer {
  const [no, position, remaining, other] = reply;
  const isKey = Number.isSafeInteger(position) && Number(position) >= 0 && Number(position) <= count;
  if (no !== 0 || operation === "end" || !isKey || !isSnapshot(ask, other, remaining))
    throw unexpectedReply();
  if (operation === "keep") return { outcome: "lost", other: String(other) };
  const blockedBy = Number(position) > 1 ? { blockedBy: Number(position) - 1 } : {};
  return { outcome: "held", retryAfter: Number(remaining), other: String(other), ...blockedBy };
}

/** The fence in a reply. */
export function readFence(word: unknown): number {
  const fence = readCounter(word);
  if (fence) return fence;
  // Not quoted: an endpoint may have put anything there, even a secret.
  throw new Error("the reply has no fence: see docs/fencing.md");
}

/** Whether these can be a key's value and the ms until it expires, as a script returns them. */
export function isSnapshot({ endpoint }: Ask, value: unknown, remaining: unknown): boolean {
  // A client in between may have parsed the value; nothing else turns text into another type.
  return Number.isSafeInteger(remaining) && (typeof value === "string" || !endpoint.exactReplies);
}

/** A counter as a script prints it, or a client in between has parsed it. Undefined: it is no counter. */
export function readCounter(word: unknown): number | undefined {
  const count = typeof word !== "object" && /^\d+$/.test(String(word)) ? Number(word) : 0;
  return count > 0 && Number.isSafeInteger(count) ? count : undefined;
}

/** Sends a native command with two possible replies. `refused`: the outcome of a no. */
function sendPlain(
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

/**
 * Whether `SET … NX` does it, and its reply can be trusted. Without a native release it is not asked before a script has run
 * there: what can never be released must not be acquired.
 */
function isClaimedNatively(ask: Ask, cell: Cell): boolean {
  return isPlain(ask, cell) && (hasCompareAndSet(ask) || serverOf(ask.endpoint).releases === true);
}

/** Whether commands that compare and set or delete do it. */
function comparesNatively(ask: Ask, cell: Cell): boolean {
  return isPlain(ask, cell) && hasCompareAndSet(ask);
}

/** Whether a native command is enough, and its reply can be trusted. */
function isPlain({ endpoint }: Ask, { keys, tombstone }: Cell): boolean {
  return endpoint.exactReplies === true && keys.length === 1 && !tombstone;
}

/** Whether the endpoint has commands that compare and set or delete, and their replies can be trusted. */
function hasCompareAndSet({ endpoint }: Ask): boolean {
  return endpoint.dialect !== "redis" && endpoint.exactReplies === true;
}
