import type { Command } from "../../../src/endpoints/endpoint.ts";

// What an endpoint said, read strictly from the protocol and apart from the library: the oracle of these tests.
// A reply that equals the true one is the server's word, whether or not the server did what it says; everything
// else says nothing.

/** What a command asks for. */
export interface Question {
  readonly op: "acquire" | "restore" | "read" | "raise" | "extend" | "verify" | "release" | "free" | "look";
  /** The value that it takes, renews or drops. */
  readonly value: string;
  /** The value to leave there. */
  readonly left: string;
  /** Whether a fence is drawn. */
  readonly fenced: boolean;
  readonly script: boolean;
}

/** What one reply says to it. */
export interface Claim {
  readonly said: "yes" | "no" | "nothing";
  readonly fence?: number | undefined;
  /** The value that stands there. */
  readonly other?: string | undefined;
  readonly remaining?: number | undefined;
}

const nothing: Claim = { said: "nothing" };

/** What a command of the library asks for. */
export function questionOf(command: Command): Question {
  const [name, ...words] = command.map(String);
  if (name === "DELEX") {
    return { op: "release", value: words[2]!, left: "", fenced: false, script: false };
  }
  if (name === "SET") {
    const [, value = "", how, old] = words;
    const op = how === "IFEQ" ? "extend" : words.includes("GET") ? "read" : "acquire";
    return { op, value: op === "extend" ? old! : value, left: value, fenced: false, script: false };
  }
  const [operation, value = "", , , ttl, left = "", , retention] = words.slice(2 + Number(words[1]));
  const fenced = Number(retention) > 0;
  const renewal = ttl !== "0" ? "extend" : fenced ? "raise" : "verify";
  const op =
    operation === "extend" ? renewal : (operation as "acquire" | "restore" | "release" | "free" | "look");
  return { op, value, left, fenced, script: true };
}

/**
 * What `reply`, as Redis would have given it, says to a question. `parsed`: a client in between has made values of
 * what looks like JSON, so that a value may be of any type.
 */
export function claimOf({ op, value, fenced, script }: Question, reply: unknown, parsed = false): Claim {
  const isText = (word: unknown) => parsed || typeof word === "string";
  if (!script) {
    if (op === "release") return reply === 1 ? { said: "yes" } : reply === 0 ? { said: "no" } : nothing;
    if (op === "read") {
      if (reply === null || reply === value) return { said: "yes" };
      return typeof reply === "string" ? { said: "no", other: reply } : nothing;
    }
    return reply === "OK" ? { said: "yes" } : reply === null ? { said: "no" } : nothing;
  }
  if (!Array.isArray(reply)) return nothing;
  if (op === "look") return isText(reply[0]) ? sightOf(reply) : nothing;
  if (reply[0] === value) {
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

function sightOf(reply: readonly unknown[]): Claim {
  const [other, remaining, counter] = reply;
  if (reply.length !== 3 || !isInteger(remaining)) return nothing;
  const fence = counter === "" ? undefined : integer(counter);
  if (counter !== "" && (fence === undefined || fence < 1)) return nothing;
  return { said: "yes", other: String(other), remaining, fence };
}

function isInteger(word: unknown): word is number {
  return Number.isSafeInteger(word);
}

/** A counter is text of digits, or a number where the client in between has parsed it. */
function integer(word: unknown): number | undefined {
  const digits = typeof word === "number" || (typeof word === "string" && /^\d+$/.test(word));
  return digits && Number.isSafeInteger(Number(word)) ? Number(word) : undefined;
}
