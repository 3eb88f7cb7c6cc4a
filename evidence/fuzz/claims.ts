import type { Command } from "../../src/index.ts";

// The oracle of these tests: what an endpoint's reply claims, parsed strictly by the protocol and without the library.
// A reply with the form of a true one is a claim, whether or not the server did what it claims; every other reply
// claims nothing.

/** What a command asks of the endpoint. */
export interface ParsedCommand {
  readonly op: "claim" | "restore" | "read" | "raise" | "keep" | "verify" | "end" | "free" | "peek";
  /** The value that it claims, keeps or ends. */
  readonly value: string;
  /** The value that stands there afterwards. */
  readonly newValue: string;
  /** How many keys it is about. */
  readonly count: number;
  /** Whether a fence is drawn. */
  readonly fenced: boolean;
  readonly script: boolean;
  /** Whether a lock's plain acquire returns what was there. */
  readonly looks?: boolean;
}

/** What one reply claims. */
export interface Claim {
  readonly said: "yes" | "no" | "nothing";
  readonly fence?: number | undefined;
  /** The value that stands there. */
  readonly other?: string | undefined;
  readonly remaining?: number | undefined;
}

const nothing: Claim = { said: "nothing" };

/** Parses a command of the library. */
export function parseCommand(command: Command): ParsedCommand {
  const [name, ...words] = command.map(String);
  const plain = { fenced: false, script: false, count: 1 };
  if (name === "DELEX") return { ...plain, op: "end", value: words[2]!, newValue: "" };
  if (name === "SET") {
    const [, value = "", how, old] = words;
    const returnsOld = words.includes("GET");
    const looks = returnsOld && !value.startsWith("P1 ");
    const op = how === "IFEQ" ? "keep" : returnsOld && !looks ? "read" : "claim";
    return { ...plain, op, value: op === "keep" ? old! : value, newValue: value, looks };
  }
  const args = words.slice(2 + Number(words[1]));
  const [operation, value = "", count, ttl, , , retention, , newValue = ""] = args;
  const fenced = Number(retention) > 0;
  const kept = ttl !== "0" ? "keep" : fenced ? "raise" : "verify";
  const claimed = operation === "prove" ? "claim" : operation;
  const op = operation === "keep" ? kept : (claimed as ParsedCommand["op"]);
  return { op, value, newValue, fenced, script: true, count: Number(count) };
}

/**
 * What a reply claims about a command.
 *
 * @param parsed a client in between has parsed what looks like JSON, so that a value may be of any type
 */
export function claimOf(
  { op, value, count, fenced, script, looks }: ParsedCommand,
  reply: unknown,
  parsed = false,
): Claim {
  const isText = (word: unknown) => parsed || typeof word === "string";
  if (!script) {
    if (op === "end") return reply === 1 ? { said: "yes" } : reply === 0 ? { said: "no" } : nothing;
    if (op === "read" || looks) {
      if (reply === null || (reply === value && !looks)) return { said: "yes" };
      return typeof reply === "string" ? { said: "no", other: reply } : nothing;
    }
    return reply === "OK" ? { said: "yes" } : reply === null ? { said: "no" } : nothing;
  }
  if (!Array.isArray(reply)) return nothing;
  if (op === "peek") return isText(reply[0]) ? snapshotClaim(reply) : nothing;
  const [echo, word, remaining, other] = reply;
  if (op === "free") {
    if (reply.length !== 1) return nothing;
    return echo === value ? { said: "yes" } : echo === 0 ? { said: "no" } : nothing;
  }
  if (echo === value) return op === "end" ? endClaim(word, count) : grantClaim(word, fenced);
  const isPlace = isInteger(word) && word >= 0 && word <= count;
  if (echo !== 0 || op === "end" || !isPlace || !isText(other) || !isInteger(remaining)) return nothing;
  return { said: "no", other: String(other), remaining };
}

function grantClaim(word: unknown, fenced: boolean): Claim {
  if (!fenced) return { said: "yes" };
  const fence = integer(word);
  return fence !== undefined && fence > 0 ? { said: "yes", fence } : nothing;
}

/** What an end found: a letter for each key. */
function endClaim(word: unknown, count: number): Claim {
  if (typeof word !== "string" || word.length !== count || /[^tf]/.test(word)) return nothing;
  return { said: word.includes("f") ? "no" : "yes" };
}

function snapshotClaim(reply: readonly unknown[]): Claim {
  const [other, remaining, counter] = reply;
  if (reply.length !== 3 || !isInteger(remaining)) return nothing;
  if (other === "" && remaining !== -2) return nothing;
  const fence = counter === "" ? undefined : integer(counter);
  if (counter !== "" && (fence === undefined || fence < 1)) return nothing;
  return { said: "yes", other: String(other), remaining, fence };
}

function isInteger(word: unknown): word is number {
  return Number.isSafeInteger(word);
}

/** A counter is a text of digits, or a number that the client in between has parsed. */
function integer(word: unknown): number | undefined {
  const digits = typeof word === "number" || (typeof word === "string" && /^\d+$/.test(word));
  return digits && Number.isSafeInteger(Number(word)) ? Number(word) : undefined;
}
