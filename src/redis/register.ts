import type { Command, Endpoint } from "../endpoints/endpoint.ts";
import type { Answer } from "../quorum/round.ts";
import { registerScript, type Script, upstashFlag } from "./register-script.ts";

// A register on one endpoint: a value with a ttl, at one key or at several together. Locks, idempotency records
// and semaphore slots are all made of these operations. Each is one request, executed or not, and each may be
// executed twice without harm. Where the endpoint has a command for it, it is that; else it is the script.

/** Where a value stands, or is to stand. */
export interface Register {
  /** One, or several that are taken all together or not at all. */
  readonly keys: readonly string[];
  /** Begins with a letter, so that no client in between takes it for JSON or a number. */
  readonly value: string;
  /** Where the comparison of values begins; 1: they are compared whole. */
  readonly from?: number | undefined;
  /** Remembers that the value was withdrawn, so that a late request for it is refused. */
  readonly tombstone?: string | undefined;
  /** Counters of which a fence is drawn. */
  readonly counters?: readonly string[] | undefined;
  /** What stands before the owner at each key when a drop is to end it. Default: the value's own nonce. */
  readonly marks?: string | undefined;
}

/** Requests sent, and commands as Upstash bills them. */
export interface RequestCost {
  requests: number;
  commands: number;
}

/** One conversation with one endpoint, within a deadline that `signal` ends. */
export interface Call {
  readonly endpoint: Endpoint;
  readonly signal: AbortSignal;
  readonly cost: RequestCost;
}

/** What came of an operation. */
export interface RegisterAnswer extends Answer {
  /** The fence drawn, where there are counters. */
  readonly fence?: number | undefined;
  /** ms until the obstacle expires, where the endpoint said so. */
  readonly retryAfter?: number | undefined;
  /** The value that stands in the way, where the endpoint said so. */
  readonly other?: string | undefined;
  /** The marks under which its owner holds it; of a drop: it named others, and nothing was dropped. */
  readonly marks?: string | undefined;
}

/** What the fence is at least, and for how many ms its counters outlive the moment that it names. */
export interface Fencing {
  readonly least: number;
  readonly retention: number;
}

const granted: RegisterAnswer = { outcome: "granted" };

/** Sends one command. */
export function send(call: Call, command: Command): Promise<unknown> {
  call.cost.requests += 1;
  call.cost.commands += 1;
  return call.endpoint.send(command, call.signal);
}

/** Runs a script by its hash, and by its text where the endpoint does not know it yet. */
export async function runScript(
  call: Call,
  script: Script,
  keys: readonly string[],
  args: Command,
): Promise<unknown> {
  const { dialect } = call.endpoint;
  const rest = [keys.length, ...keys, ...args];
  try {
    return await send(call, ["EVALSHA", script.sha[dialect], ...rest]);
  } catch (error) {
    // NOSCRIPT proves that nothing was executed: the one failure after which sending again is safe.
    if (!(error as Error).message.includes("NOSCRIPT")) throw error;
    return send(call, ["EVAL", (dialect === "upstash" ? upstashFlag : "") + script.source, ...rest]);
  }
}

/** Takes the register if it is empty, or the value's already. */
export async function acquire(
  call: Call,
  register: Register,
  ttl: number,
  fencing?: Fencing,
): Promise<RegisterAnswer> {
  const { keys, value } = register;
  if (call.endpoint.exactReplies && isPlain(register)) {
    return plainAnswer(await send(call, ["SET", keys[0]!, value, "NX", "PX", ttl]), "OK", null, "held");
  }
  return operate(call, "acquire", register, ttl, value, fencing);
}

/** Takes the register, or tells what stands in it. */
export async function acquireOrRead(call: Call, register: Register, ttl: number): Promise<RegisterAnswer> {
  const { keys, value } = register;
  if (call.endpoint.exactReplies && isPlain(register)) {
    try {
      const other = await send(call, ["SET", keys[0]!, value, "NX", "GET", "PX", ttl]);
      // Its own value stands there already: an earlier execution whose reply was lost.
      if (other === null || other === value) return granted;
      if (typeof other !== "string") throw new Error("unexpected reply to a command");
      return { outcome: "held", other };
    } catch (error) {
      // Redis before 7.0 knows NX and GET, but not together. It says so before it does anything.
      if (!(error as Error).message.includes("syntax error")) throw error;
    }
  }
  return operate(call, "acquire", register, ttl);
}

/** Gives the register a new ttl, and a new value if there is one; never creates it. ttl 0 only looks. */
export async function extend(
  call: Call,
  register: Register,
  ttl: number,
  value: string = register.value,
): Promise<RegisterAnswer> {
  if (isNative(call) && isPlain(register) && ttl > 0) {
    const { keys, value: old } = register;
    return plainAnswer(
      await send(call, ["SET", keys[0]!, value, "IFEQ", old, "PX", ttl]),
      "OK",
      null,
      "lost",
    );
  }
  return operate(call, "extend", register, ttl, value);
}

/** Raises the counters to the least fence while the register is the value's, and with a ttl renews it. */
export function raiseFence(
  call: Call,
  register: Register,
  fencing: Fencing,
  ttl = 0,
): Promise<RegisterAnswer> {
  return operate(call, "extend", register, ttl, register.value, fencing);
}

/** Takes what its holder has lost at this endpoint, by a script: also where plain commands would do. */
export function restore(
  call: Call,
  register: Register,
  ttl: number,
  fencing?: Fencing,
): Promise<RegisterAnswer> {
  return operate(call, "restore", register, ttl, register.value, fencing);
}

/** Deletes what is the value's, and leaves a tombstone, if there is one, for `retention` ms. */
export async function release(call: Call, register: Register, retention = 0): Promise<RegisterAnswer> {
  if (isNative(call) && isPlain(register)) {
    const { keys, value } = register;
    return plainAnswer(await send(call, ["DELEX", keys[0]!, "IFEQ", value]), 1, 0, "lost");
  }
  const { keys, value, from = 1, marks = value.slice(0, from - 1).repeat(keys.length) } = register;
  return operate(call, "release", register, retention, marks);
}

async function operate(
  call: Call,
  operation: "acquire" | "restore" | "extend" | "release",
  { keys, value, from = 1, tombstone, counters = [] }: Register,
  ttl: number,
  left: string = value,
  { least, retention }: Fencing = { least: 0, retention: 0 },
): Promise<RegisterAnswer> {
  const { cost } = call;
  const drawn = retention ? counters : [];
  const names = tombstone ? [...keys, tombstone, ...drawn] : keys;
  const reply = await runScript(call, registerScript, names, [
    operation,
    value,
    from,
    keys.length,
    ttl,
    left,
    least,
    retention,
  ]);
  if (!Array.isArray(reply)) throw new Error("unexpected reply to a script");
  // What Upstash bills beside the script itself: it reads all keys, then writes what it grants, or deletes.
  cost.commands += 1;
  if (reply[0] === value) {
    // An owner's ttl is looked at before it is renewed, and the clock before counters are written.
    const renewals = operation === "extend" && from > 1 ? 2 * keys.length : keys.length;
    const counted = drawn.length && drawn.length + 1;
    cost.commands += operation === "release" ? names.length : (ttl && renewals) + counted;
    const marks = from > 1 && isMarks(reply[2], keys.length * (from - 1)) ? reply[2] : undefined;
    if (!retention) return { outcome: "granted", ...(marks && { marks }) };
    const fence = counterIn(reply[1]);
    // Not quoted: it is whatever the endpoint said, a secret perhaps.
    if (!fence) {
      throw new Error(
        "the fence in the reply is not a positive safe integer; docs/fencing.md says what to do",
      );
    }
    return { outcome: "granted", fence, ...(marks && { marks }) };
  }
  const [no, retryAfter, other] = reply;
  if (operation === "release") {
    const marks =
      reply.length === 2 && isMarks(retryAfter, keys.length * (from - 1)) ? retryAfter : undefined;
    if (no !== 0 || (reply.length !== 1 && !marks)) throw new Error("unexpected reply to a script");
    return { outcome: "lost", ...(marks && { marks }) };
  }
  // A refusal has one form, too: an endpoint that says anything else is out of order, not held by someone.
  if (no !== 0 || reply.length !== 3 || !isSnapshot(call, other, retryAfter)) {
    throw new Error("unexpected reply to a script");
  }
  if (operation === "extend") return { outcome: "lost" };
  cost.commands += 1;
  return { outcome: "held", retryAfter, other: String(other) };
}

/** Whether a script can have told these marks: of so many characters, of which each has a letter or digit or is absent. */
function isMarks(text: unknown, length: number): text is string {
  return typeof text === "string" && length > 0 && text.length === length && /^[a-z0-9-]+$/.test(text);
}

/** Whether a script can have told so of a key: the value that stands there, and the ms until it expires. */
export function isSnapshot({ endpoint }: Call, value: unknown, remaining: unknown): boolean {
  // A client in between may have parsed the value; nobody else makes anything but text of it.
  return Number.isSafeInteger(remaining) && (typeof value === "string" || !endpoint.exactReplies);
}

/** A counter that a script printed, or that a client in between has parsed; undefined: orders nothing. */
export function counterIn(word: unknown): number | undefined {
  const printed = typeof word === "number" || (typeof word === "string" && /^\d+$/.test(word));
  return printed && Number.isSafeInteger(Number(word)) && Number(word) > 0 ? Number(word) : undefined;
}

/** What the reply to a plain command means: it has one that says yes and one that says no; others say nothing. */
function plainAnswer(reply: unknown, yes: unknown, no: unknown, refusal: "held" | "lost"): RegisterAnswer {
  if (reply === yes) return granted;
  if (reply === no) return { outcome: refusal };
  throw new Error("unexpected reply to a command");
}

/** Whether compare-and-set commands exist there and their plain replies can be trusted. */
function isNative({ endpoint }: Call): boolean {
  return endpoint.dialect === "upstash" && endpoint.exactReplies === true;
}

/** Whether plain commands can do it. */
function isPlain({ keys, from = 1, tombstone }: Register): boolean {
  return keys.length === 1 && from === 1 && !tombstone;
}
