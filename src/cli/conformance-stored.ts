import { peekScript } from "../redis/peek.lua.ts";
import {
  type ConformanceSession,
  probeTtl,
  type Span,
  UnexpectedReply,
  type Written,
} from "./conformance-session.ts";
import { isRefusal } from "./doctor-advice.ts";
import { asFailure } from "./doctor-probe.ts";

// What a server has stored, whatever it has answered.

/** ms by which a ttl may differ from what was asked for: clocks run and round differently. */
const tolerance = 100;

/** What is at a key. */
export interface Found {
  /** null: nothing. */
  readonly value: unknown;
  /** ms until it expires; -1: never, -2: nothing is there. */
  readonly remaining: unknown;
}

/** Something stored, as it was written; and the reply. */
export type Write = Required<Written> & { readonly reply: unknown };

/** Writes a value, which expires. `options` stand between the value and the ttl: `NX`. */
export async function write(
  session: ConformanceSession,
  key: string,
  value: string,
  { options = [], ttl = probeTtl }: { readonly options?: readonly string[]; readonly ttl?: number } = {},
): Promise<Write> {
  const { reply, ...at } = await session.askTimed(["SET", key, value, ...options, "PX", ttl]);
  return { key, value, ttl, at, reply };
}

/**
 * Looks whether it is stored.
 *
 * @param when begins the message
 * @throws UnexpectedReply that says what is there instead
 */
export async function mustBeStored(
  session: ConformanceSession,
  written: Written,
  when?: string,
): Promise<void> {
  const wrong = await mistakeIn(session, written);
  if (wrong) throw new UnexpectedReply(when ? `${when}, ${wrong}` : wrong);
}

/** Those of which something else is there, and which cannot have expired. */
export async function mistaken(
  session: ConformanceSession,
  written: readonly Written[],
): Promise<readonly Written[]> {
  const all = written.filter((each) => !mayBeOver(each, session.runtime.monotonic()));
  if (all.length === 0) return [];
  const reply = await session.ask(["MGET", ...all.map(({ key }) => key)]);
  const values = Array.isArray(reply) ? reply : [];
  const wrong: Written[] = [];
  for (const [index, each] of all.entries()) {
    if (values[index] !== each.value && (await mistakeIn(session, each))) wrong.push(each);
  }
  return wrong;
}

const mayBeOver = ({ ttl, at }: Written, now: number) => ttl && at && now - at.from >= ttl - tolerance;

/**
 * What is wrong with what is stored; undefined: nothing. Two ways to look must agree on that: a replica may lag, and a script
 * that reads may be what is wrong.
 */
async function mistakeIn(session: ConformanceSession, written: Written): Promise<string | undefined> {
  const wrong = await mistakeBy(session, written, peek);
  return wrong && (await mistakeBy(session, written, read)) && wrong;
}

async function mistakeBy(
  session: ConformanceSession,
  written: Written,
  look: (session: ConformanceSession, key: string) => Promise<Found | undefined>,
): Promise<string | undefined> {
  const from = session.runtime.monotonic();
  const found = await look(session, written.key);
  return found ? mistakeOf(written, found, { from, to: session.runtime.monotonic() }) : "it cannot be read";
}

/** By a script, which only a primary executes; undefined: the server refuses it. */
export async function peek(session: ConformanceSession, key: string): Promise<Found | undefined> {
  if (session.seen.eval?.failure) return undefined;
  const reply = await unlessRefused(session.ask(["EVAL", peekScript.source, 1, key, "peek"]));
  const [text, remaining] = Array.isArray(reply) ? reply : [];
  return reply === undefined
    ? undefined
    : { value: remaining === -2 && text === "" ? null : text, remaining };
}

/** As a program reads. */
async function read(session: ConformanceSession, key: string): Promise<Found> {
  // A collection is refused: it is no value.
  const value = await unlessRefused(session.ask(["GET", key]));
  return { value, remaining: await session.ask(["PTTL", key]) };
}

async function unlessRefused(asking: Promise<unknown>): Promise<unknown> {
  try {
    return await asking;
  } catch (error) {
    if (isRefusal(asFailure(error))) return undefined;
    throw error;
  }
}

/** What is wrong with what was found; undefined: nothing. */
function mistakeOf(written: Written, found: Found, look: Span): string | undefined {
  const { value, ttl, at } = written;
  if (value === null) return found.value === null ? undefined : "it is still there";
  if (mayBeOver(written, look.to)) return undefined;
  if (found.remaining === -2 || found.value === null) return "nothing is stored";
  if (value !== undefined && value !== found.value) return anotherValue(value, found.value);
  return ttl && at ? ttlMistake(ttl, at, found.remaining, look) : undefined;
}

function anotherValue(value: string, found: unknown): string {
  const isCut = typeof found === "string" && found !== "" && value.startsWith(found);
  return isCut ? `${found.length} of ${value.length} characters are stored` : "another value is stored";
}

/**
 * What is wrong with the time that remains. The server has counted from a moment of the first span to one of the second: that
 * is all that this machine's clock can tell, so a slow answer is no mistake.
 */
export function ttlMistake(ttl: number, at: Span, remaining: unknown, look: Span): string | undefined {
  if (!Number.isSafeInteger(remaining)) return "its ttl is no number";
  const ms = Number(remaining);
  if (ms === -1) return "it never expires";
  const least = ttl - (look.to - at.from) - tolerance;
  const most = ttl - (look.from - at.to) + tolerance;
  if (ms >= least && ms <= most) return undefined;
  return `${ms} ms are left of ${ttl} after ${Math.round(look.to - at.from)} ms`;
}
