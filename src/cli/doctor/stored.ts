import { peekScript } from "../../redis/peek.lua.ts";
import { failureOf, isRefusal } from "../access.ts";
import { probeTtl, type Session, type Span, UnexpectedReply, type Written } from "./session.ts";

// What a server has stored, whatever it has answered.

/** ms by which a ttl may differ from what was asked for: clocks run and round differently. */
const tolerance = 100;

/** What is at a key. */
interface Found {
  /** null: nothing. */
  readonly value: unknown;
  /** ms until it expires; -1: never, -2: nothing is there. */
  readonly remaining: unknown;
}

/** Writes a value. */
export async function write(session: Session, { key, value }: Written): Promise<Written> {
  const { at } = await session.timed(() => session.ask(["SET", key, value!, "PX", probeTtl]));
  return { key, value, ttl: probeTtl, at };
}

/** @throws UnexpectedReply that says what is there instead, and when */
export async function mustBeStored(session: Session, written: Written, when?: string): Promise<void> {
  const wrong = await mistakeIn(session, written);
  if (wrong) throw new UnexpectedReply(when ? `${when}: ${wrong}` : wrong);
}

/** Those of which something else is there, and which cannot have expired. */
export async function mistaken(session: Session, written: readonly Written[]): Promise<Written[]> {
  const all = written.filter((each) => !mayBeOver(each, session.now()));
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
async function mistakeIn(session: Session, written: Written): Promise<string | undefined> {
  let wrong: string | undefined;
  for (const look of [peek, read]) {
    const { result: found, at } = await session.timed(() => look(session, written.key));
    wrong = found ? mistakeOf(written, found, at) : "it cannot be read";
    if (!wrong) break;
  }
  return wrong;
}

/** By a script, which only a primary executes; undefined: the server refuses it. */
export async function peek(session: Session, key: string): Promise<Found | undefined> {
  if (session.seen.eval?.failure) return undefined;
  const reply = await unlessRefused(session.ask(["EVAL", peekScript.source, 1, key, "peek"]));
  const [text, remaining] = Array.isArray(reply) ? reply : [];
  return reply === undefined
    ? undefined
    : { value: remaining === -2 && text === "" ? null : text, remaining };
}

/** As a program reads. */
async function read(session: Session, key: string): Promise<Found> {
  // A collection is refused: it is no value.
  const value = await unlessRefused(session.ask(["GET", key]));
  return { value, remaining: await session.ask(["PTTL", key]) };
}

async function unlessRefused(asking: Promise<unknown>): Promise<unknown> {
  try {
    return await asking;
  } catch (error) {
    if (isRefusal(failureOf(error))) return undefined;
    throw error;
  }
}

/** What is wrong with what was found at some time; undefined: nothing. */
export function mistakeOf(written: Written, found: Found, time: Span): string | undefined {
  const { value, ttl, at } = written;
  if (value === null) return found.value === null ? undefined : "it is still there";
  if (mayBeOver(written, time.to)) return undefined;
  if (found.remaining === -2 || found.value === null) return "nothing is stored";
  if (value !== found.value) return anotherValue(value, found.value);
  return ttl && at ? ttlMistake(ttl, at, found.remaining, time) : undefined;
}

function anotherValue(value: string, found: unknown): string {
  const isCut = typeof found === "string" && found !== "" && value.startsWith(found);
  return isCut ? `${found.length} of ${value.length} characters are stored` : "another value is stored";
}

/**
 * What is wrong with the time that remains. The server has counted from a moment of the first span to one of the second: that
 * is all that this machine's clock can tell, so a slow answer is no mistake.
 */
function ttlMistake(ttl: number, at: Span, remaining: unknown, look: Span): string | undefined {
  if (!Number.isSafeInteger(remaining)) return "its ttl is no number";
  const ms = Number(remaining);
  if (ms === -1) return "it never expires";
  const least = ttl - (look.to - at.from) - tolerance;
  const most = ttl - (look.from - at.to) + tolerance;
  if (ms >= least && ms <= most) return undefined;
  return `${ms} ms are left of ${ttl} after ${Math.round(look.to - at.from)} ms`;
}
