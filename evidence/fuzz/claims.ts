import type { Command } from "../../src/endpoints/endpoint.ts";

// The oracle of these tests: what an endpoint's reply claims, parsed strictly by the protocol and without the library.
// A reply with the form of a true one is a claim, whether or not the server did what it claims; every other reply
// claims nothing.

/** What a command asks of the endpoint. */
export interface ParsedCommand {
  readonly op: "acquire" | "restore" | "read" | "raise" | "extend" | "verify" | "release" | "free" | "peek";
  /** The value that it acquires, extends or releases. */
  readonly value: string;
  /** The value that stands there afterwards. */
  readonly newValue: string;
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
  if (name === "DELEX") {
    return { op: "release", value: words[2]!, newValue: "", fenced: false, script: false };
  }
  if (name === "SET") {
    const [, value = "", how, old] = words;
    const returnsOld = words.includes("GET");
    const looks = returnsOld && !value.startsWith("P1 ");
    const op = how === "IFEQ" ? "extend" : returnsOld && !looks ? "read" : "acquire";
    return {
      op,
      value: op === "extend" ? old! : value,
      newValue: value,
      fenced: false,
      script: false,
      looks,
    };
  }
  const [operation, value = "", , , ttl, newValue = "", , retention] = words.slice(2 + Number(words[1]));
  const fenced = Number(retention) > 0;
  const renewal = ttl !== "0" ? "extend" : fenced ? "raise" : "verify";
  const op =
    operation === "extend" ? renewal : (operation as "acquire" | "restore" | "release" | "free" | "peek");
  return { op, value, newValue, fenced, script: true };
}

/**
 * What a reply claims about a command.
 *
 * @param parsed a client in between has parsed what looks like JSON, so that a value may be of any type
 */
export function claimOf(
  { op, value, fenced, script, looks }: ParsedCommand,
  reply: unknown,
  parsed = false,
): Claim {
  const isText = (word: unknown) => parsed || typeof word === "string";
  if (!script) {
    if (op === "release") return reply === 1 ? { said: "yes" } : reply === 0 ? { said: "no" } : nothing;
    if (op === "read" || looks) {
      if (reply === null || (reply === value && !looks)) return { said: "yes" };
      return typeof reply === "string" ? { said: "no", other: reply } : nothing;
    }
    return reply === "OK" ? { said: "yes" } : reply === null ? { said: "no" } : nothing;
  }
  if (!Array.isArray(reply)) return nothing;
  if (op === "peek") return isText(reply[0]) ? snapshotClaim(reply) : nothing;
  if (reply[0] === value) {
    if (op === "free" && reply.length !== 1) return nothing;
    if (!fenced) return { said: "yes" };
    const fence = integer(reply[1]);
    return fence !== undefined && fence > 0 ? { said: "yes", fence } : nothing;
  }
  if (reply[0] !== 0) return nothing;
  if (op === "release" || op === "free") return reply.length === 1 ? { said: "no" } : nothing;
  const [, remaining, other] = reply;
  if (reply.length !== 3 || !isText(other) || !isInteger(remaining)) return nothing;
  return { said: "no", other: String(other), remaining };
}

function snapshotClaim(reply: readonly unknown[]): Claim {
  const [other, remaining, counter] = reply;
  if (reply.length !== 3 || !isInteger(remaining)) return nothing;
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
