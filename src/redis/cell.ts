import type { Command } from "../endpoints/endpoint.ts";
import { type EndpointRequest, send } from "../endpoints/endpoint-request.ts";
import { serverOf } from "../endpoints/server.ts";
import { cellScript } from "./cell.lua.ts";
import { runScript, unexpectedReply } from "./script.ts";

// A cell on one endpoint: a value with a ttl, at one key or at several together. Locks, idempotency records
// and semaphore permits are made of these operations. Each is one request, and each may be executed twice without harm.
// Where the endpoint has a native command for it, that is used; else the script.

/** Where a value is stored, or is to be stored. */
export interface Cell {
  /** One key, or several that are acquired all together or not at all. */
  readonly keys: readonly string[];
  /** Begins with a letter, so that no client in between parses it as JSON or a number. */
  readonly value: string;
  /** The character at which the comparison of values begins. Default 1: they are compared whole. */
  readonly compareFrom?: number | undefined;
  /** Key that remembers that the value was rolled back, so that a late request for it is refused. */
  readonly tombstone?: string | undefined;
  /** Counters from which a fence is drawn. */
  readonly counters?: readonly string[] | undefined;
  /** The part before the owner that a release expects at each key. Default: the value's own nonce. */
  readonly handleTags?: string | undefined;
}

/** The result of an operation. */
export interface CellAnswer {
  readonly outcome: "granted" | "held" | "lost";
  /** The fence drawn, where there are counters. */
  readonly fence?: number | undefined;
  /** ms until the value in the way expires, where the endpoint returned it. */
  readonly retryAfter?: number | undefined;
  /** The value in the way, where the endpoint returned it. */
  readonly other?: string | undefined;
  /** The value of the lock that is in the way of a run. */
  readonly holder?: string | undefined;
  /** The tags of the handles that its owner's value has now. From a release: they differ from those it named; nothing was deleted. */
  readonly handleTags?: string | undefined;
}

/** The lowest fence to draw, and for how many ms its counters outlive the moment that the fence names. */
export interface Fencing {
  readonly least: number;
  readonly retention: number;
}

const granted: CellAnswer = { outcome: "granted" };
const noFencing: Fencing = { least: 0, retention: 0 };

/** How {@link acquire} differs from acquiring with a ttl alone. */
export interface AcquireDetails {
  readonly fencing?: Fencing;
  /** Whether to return the value in the way also where a plain command acquires, if the endpoint can. Default false. */
  readonly looks?: boolean;
}

/** Acquires the cell if it is empty; by script, also if it has this value already. */
export function acquire(
  call: EndpointRequest,
  cell: Cell,
  ttl: number,
  { fencing, looks = false }: AcquireDetails = {},
): Promise<CellAnswer> {
  if (!call.endpoint.exactReplies || !isPlain(cell)) return operate(call, "acquire", cell, { ttl, fencing });
  return looks ? acquireOrLook(call, cell, ttl) : setIfEmpty(call, cell, ttl);
}

function setIfEmpty(call: EndpointRequest, { keys, value }: Cell, ttl: number): Promise<CellAnswer> {
  return sendPlain(call, ["SET", keys[0]!, value, "NX", "PX", ttl], ["OK", null], "held");
}

async function acquireOrLook(call: EndpointRequest, cell: Cell, ttl: number): Promise<CellAnswer> {
  const other = await setOrGet(call, cell, ttl);
  if (other === undefined) return setIfEmpty(call, cell, ttl);
  // Its own value is in the way as well: the endpoint may be another one under a second name, and must not vote twice.
  if (other === cell.value && call.isResent) throw unexpectedReply();
  return other === null ? granted : { outcome: "held", other };
}

/** Acquires the cell, or returns the value in the way. */
export async function acquireOrRead(call: EndpointRequest, cell: Cell, ttl: number): Promise<CellAnswer> {
  const isNativeCell = call.endpoint.exactReplies && isPlain(cell);
  const other = isNativeCell ? await setOrGet(call, cell, ttl) : undefined;
  if (other === undefined) return operate(call, "acquire", cell, { ttl });
  // Its own value is there already: from an earlier execution whose reply was lost.
  return other === null || other === cell.value ? granted : { outcome: "held", other };
}

/** Servers that have shown that they do not know NX together with GET. */
const withoutNxGet = new WeakSet<object>();

/** Servers that have shown that they return the value in the way, as a gateway that answers null to everything does not. */
const returnsValues = new WeakSet<object>();

/** Sets a plain cell that is empty. Resolves with what was there; undefined: the endpoint does not know the command. */
async function setOrGet(
  call: EndpointRequest,
  { keys, value }: Cell,
  ttl: number,
): Promise<string | null | undefined> {
  const server = serverOf(call.endpoint);
  if (withoutNxGet.has(server)) return undefined;
  const ask = async () => {
    const other = await send(call, ["SET", keys[0]!, value, "NX", "GET", "PX", ttl]);
    if (other !== null && typeof other !== "string") throw unexpectedReply();
    // A server that ignores GET says this when it has stored the value, and null when another is in the way.
    if (other !== null && other !== "OK") returnsValues.add(server);
    return other;
  };
  try {
    const other = await ask();
    if (other !== null || returnsValues.has(server)) return other;
    // Once, it has to return what it says that it has stored.
    const stored = await ask();
    if (stored === null) {
      throw new Error("it answers null to SET with NX and GET, but has not stored the value");
    }
    return stored === value ? null : stored;
  } catch (error) {
    // Redis before 7.0 has NX and GET, but not together. It refuses before it does anything.
    if (!(error as Error).message.includes("syntax error")) throw error;
    withoutNxGet.add(server);
    return undefined;
  }
}

/** Gives the cell a new ttl, and a new value if there is one; never creates it. ttl 0 only checks. */
export function extend(call: EndpointRequest, cell: Cell, ttl: number, value?: string): Promise<CellAnswer> {
  if (isNative(call) && isPlain(cell) && ttl > 0) {
    const { keys, value: old } = cell;
    return sendPlain(call, ["SET", keys[0]!, value ?? old, "IFEQ", old, "PX", ttl], ["OK", null], "lost");
  }
  return operate(call, "extend", cell, { ttl, value });
}

/** Raises the counters to the lowest fence while the cell has the value, and with a ttl extends it: see {@link extend}. */
export function raiseFence(
  call: EndpointRequest,
  cell: Cell,
  { ttl = 0, value, ...fencing }: Fencing & { readonly ttl?: number; readonly value?: string },
): Promise<CellAnswer> {
  return operate(call, "extend", cell, { ttl, value, fencing });
}

/** Acquires again what its holder has lost at this endpoint; by script, so that the tombstone is respected. */
export function restore(
  call: EndpointRequest,
  cell: Cell,
  ttl: number,
  fencing?: Fencing,
): Promise<CellAnswer> {
  return operate(call, "restore", cell, { ttl, fencing });
}

/** Deletes the value, and leaves a tombstone, if there is one, for `retention` ms. */
export function release(call: EndpointRequest, cell: Cell, retention = 0): Promise<CellAnswer> {
  const { keys, value } = cell;
  if (isNative(call) && isPlain(cell)) {
    return sendPlain(call, ["DELEX", keys[0]!, "IFEQ", value], [1, 0], "lost");
  }
  return releaseThrough(call, cell, retention);
}

/**
 * Releases as {@link release} does, always by a script.
 *
 * @param run runs a script that contains the cell's, and resolves with that one's reply. Default: the cell's
 */
export function releaseThrough(
  call: EndpointRequest,
  cell: Cell,
  retention: number,
  run?: RunOperation,
): Promise<CellAnswer> {
  const { keys, value, compareFrom = 1, handleTags } = cell;
  const expected = handleTags ?? value.slice(0, compareFrom - 1).repeat(keys.length);
  return operate(call, "release", cell, { ttl: retention, value: expected, run });
}

/** Runs the cell's script with these keys and arguments. */
type RunOperation = (keys: readonly string[], args: readonly (string | number)[]) => Promise<unknown>;

type Operation = "acquire" | "restore" | "extend" | "release";

/** Runs the script and reads its reply. `value`: see ARGV 6 of the script; default: the cell's value. */
async function operate(
  call: EndpointRequest,
  operation: Operation,
  cell: Cell,
  more: {
    readonly ttl: number;
    readonly value?: string | undefined;
    readonly fencing?: Fencing | undefined;
    readonly run?: RunOperation | undefined;
  },
): Promise<CellAnswer> {
  const { keys, value, compareFrom = 1, tombstone, counters = [] } = cell;
  const { ttl, value: next = value, fencing: { least, retention } = noFencing } = more;
  const { run = (names, args) => runScript(call, cellScript, names, args) } = more;
  const drawn = retention ? counters : [];
  const names = tombstone ? [...keys, tombstone, ...drawn] : keys;
  const args = [operation, value, compareFrom, keys.length, ttl, next, least, retention];
  const reply = await run(names, args);
  if (!Array.isArray(reply)) throw unexpectedReply();
  // Upstash bills the script itself, one read of all keys, and each write or delete.
  call.cost.commands += 1;
  if (reply[0] !== value) return refusal(call, operation, reply, keys.length * (compareFrom - 1));
  // An owner's ttl is read before it is extended, and the clock before counters are written.
  const writes = operation === "extend" && compareFrom > 1 ? 2 * keys.length : keys.length;
  const counted = drawn.length && drawn.length + 1;
  call.cost.commands += operation === "release" ? names.length : (ttl && writes) + counted;
  return success(reply, keys.length * (compareFrom - 1), retention > 0);
}

function success(reply: readonly unknown[], tagsLength: number, isFenced: boolean): CellAnswer {
  const handleTags = areHandleTags(reply[2], tagsLength) ? { handleTags: reply[2] } : {};
  if (!isFenced) return { outcome: "granted", ...handleTags };
  return { outcome: "granted", fence: readFence(reply[1]), ...handleTags };
}

/** The fence in a reply. */
export function readFence(word: unknown): number {
  const fence = readCounter(word);
  if (fence) return fence;
  // Not quoted: an endpoint may have put anything there, even a secret.
  throw new Error("the reply has no fence: see docs/fencing.md");
}

/** A refusal has one form only: an endpoint that replies anything else is out of order, not held by someone. */
function refusal(
  call: EndpointRequest,
  operation: Operation,
  reply: readonly unknown[],
  tagsLength: number,
): CellAnswer {
  const [no, retryAfter, other] = reply;
  if (operation === "release") {
    const handleTags =
      reply.length === 2 && areHandleTags(retryAfter, tagsLength) ? { handleTags: retryAfter } : undefined;
    if (no !== 0 || (reply.length !== 1 && !handleTags)) throw unexpectedReply();
    return { outcome: "lost", ...handleTags };
  }
  if (no !== 0 || reply.length !== 3 || !isSnapshot(call, other, retryAfter)) throw unexpectedReply();
  if (operation === "extend") return { outcome: "lost", other: String(other) };
  call.cost.commands += 1;
  return { outcome: "held", retryAfter: Number(retryAfter), other: String(other) };
}

/** Whether a script can have returned these tags of handles: `length` characters, each a letter or digit, or `-` where absent. */
function areHandleTags(text: unknown, length: number): text is string {
  return typeof text === "string" && text.length === length && /^[a-z0-9-]+$/.test(text);
}

/** Whether a script can have returned this of a key: its value, and the ms until it expires. */
export function isSnapshot({ endpoint }: EndpointRequest, value: unknown, remaining: unknown): boolean {
  // A client in between may have parsed the value; nothing else turns text into another type.
  return Number.isSafeInteger(remaining) && (typeof value === "string" || !endpoint.exactReplies);
}

/** A counter that a script printed, or that a client in between has parsed; undefined where it is none. */
export function readCounter(word: unknown): number | undefined {
  const count = typeof word !== "object" && /^\d+$/.test(String(word)) ? Number(word) : 0;
  return count > 0 && Number.isSafeInteger(count) ? count : undefined;
}

/** Sends a plain command. Of its replies, the first means yes, the second no, and any other is an error. */
async function sendPlain(
  call: EndpointRequest,
  command: Command,
  [yes, no]: readonly [unknown, unknown],
  refused: "held" | "lost",
): Promise<CellAnswer> {
  const reply = await send(call, command);
  if (reply === yes) return granted;
  // Of what was sent again, a refusal may mean that the first one did it.
  if (reply === no && !call.isResent) return { outcome: refused };
  throw unexpectedReply();
}

/** Whether the endpoint has compare-and-set commands and their plain replies can be trusted. */
export function isNative({ endpoint }: EndpointRequest): boolean {
  return endpoint.dialect !== "redis" && endpoint.exactReplies === true;
}

/** Whether plain commands are enough. */
function isPlain({ keys, compareFrom = 1, tombstone }: Cell): boolean {
  return keys.length === 1 && compareFrom === 1 && !tombstone;
}
