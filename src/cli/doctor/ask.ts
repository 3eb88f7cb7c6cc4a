import { randomUUID } from "node:crypto";
import type { Ask } from "../../endpoints/ask.ts";
import { type Dialect, EndpointError } from "../../index.ts";
import { type Cell, type CellAnswer, claim, claimOrRead, end, keep } from "../../redis/cell.ts";
import { peekScript } from "../../redis/peek.lua.ts";
import { textOf } from "../../redis/script.ts";
import { unlessAborted } from "../../runtime/abort.ts";
import { lineSplitter, parseEvent } from "../../wake-up/events.ts";
import { probeTtl, type Seen, type Session, UnexpectedReply, type Written } from "./session.ts";

// How doctor finds out each thing: the rows of questions.ts. It does not believe an answer, but looks at the stored values.

export async function askRest(session: Session): Promise<Seen> {
  if ((await session.ask(["PING"])) === "PONG") return { works: true };
  return { failure: { kind: "malformed", message: "PING has another reply than PONG" } };
}

export async function askToken(session: Session): Promise<Seen> {
  await session.ask(["SET", session.key("token"), "v", "PX", probeTtl]);
  return { works: true };
}

/** Every endpoint writes one shared key: two that are one database meet there. */
export async function askDatabase(session: Session): Promise<Seen> {
  const { number } = session.place;
  const key = session.key("database", "all");
  if ((await session.ask(["SET", key, number, "NX", "PX", probeTtl])) === "OK") return { works: true };
  const first = Number(await session.ask(["GET", key]));
  if (first === 0 || first === number) return { works: true };
  return { failure: { kind: "config", message: `it is the same database as endpoint ${first}` } };
}

/** How many times the clock is read. */
const samples = 5;

/** The round trip, and the clock from the fastest of the replies. */
export async function askClock(session: Session): Promise<Seen> {
  const readings: { readonly took: number; readonly ahead: number }[] = [];
  for (let sample = 0; sample < samples; sample += 1) {
    const [sentAt, from] = [session.settings.runtime.now(), session.now()];
    const reply = await session.ask(["TIME"]);
    const took = session.now() - from;
    const [seconds = Number.NaN, micros = Number.NaN] = Array.isArray(reply) ? reply.map(Number) : [];
    const ahead = seconds * 1_000 + micros / 1_000 - (sentAt + took / 2);
    if (!Number.isFinite(ahead)) return {};
    readings.push({ took, ahead });
  }
  readings.sort((a, b) => a.took - b.took);
  const { took, ahead } = readings[0]!;
  const roundTrip = Math.round(readings[samples >> 1]!.took * 10) / 10;
  // The way there and back account for the rest. The wall clock counts whole milliseconds.
  const distance = Math.max(0, Math.abs(ahead) - took / 2 - 1);
  return { works: true, roundTrip, clock: Math.round(Math.sign(ahead) * distance) };
}

/** An operation of the library, its outcome, and what must be stored afterwards. */
type Step = readonly [
  what: string,
  operation: (call: Ask) => Promise<CellAnswer>,
  outcome: CellAnswer["outcome"],
  stored: Omit<Written, "at">,
];

/** The lowest fence: as many digits as one of today has. */
const least = 1_234_567_890_123;

/** How a lock is claimed. With a fence, all is done by script. */
function cellOf(session: Session, name: string, isFenced = false): Cell & { readonly key: string } {
  const key = session.key(name);
  const counters = { keys: [session.key(`${name}:fence`)], least, retention: probeTtl };
  const fenced = { tombstone: session.key(`${name}:void`), counters };
  return { key, keys: [key], value: `c${key}`, ...(isFenced && fenced) };
}

/** A lock from its claim to its end, and others who try to get, extend and end it. */
function life(session: Session, name: string, isFenced = false, claimOne: typeof claim = claim): Step[] {
  const own = cellOf(session, name, isFenced);
  const other = { ...cellOf(session, `${name}:other`, isFenced), keys: own.keys };
  const absent = cellOf(session, `${name}:absent`, isFenced);
  const half = probeTtl / 2;
  const acquired = { key: own.key, value: own.value, ttl: half };
  const extended = { ...acquired, ttl: probeTtl };
  const gone = { key: own.key, value: null, ttl: 0 };
  const nothing = { ...gone, key: absent.key };
  return [
    ["a claim", (call) => claimOne(call, own, half), "granted", acquired],
    ["another claim", (call) => claimOne(call, other, probeTtl), "held", acquired],
    ["an extension", (call) => keep(call, own, probeTtl), "granted", extended],
    ["an extension of another value", (call) => keep(call, other, half), "lost", extended],
    ["an extension of nothing", (call) => keep(call, absent, half), "lost", nothing],
    ["an end of another value", (call) => end(call, other), "lost", extended],
    ["an end", (call) => end(call, own), "granted", gone],
    ["an end of nothing", (call) => end(call, absent), "lost", nothing],
  ];
}

/**
 * Goes through steps, until something is wrong.
 *
 * @param byHash whether scripts are sent by their hash, except for the first time
 */
async function follow(
  session: Session,
  dialect: Dialect,
  steps: readonly Step[],
  byHash = false,
): Promise<Seen> {
  const send: Ask["send"] = async (command) => {
    if (command[0] !== "EVALSHA") return session.ask(command);
    if (!byHash) throw new Error("NOSCRIPT");
    return session.ask(command).catch((error: Error) => {
      throw error.message.includes("NOSCRIPT") ? new UnexpectedReply("no script is remembered") : error;
    });
  };
  const call: Ask = { endpoint: { ...session.endpoint, dialect }, send };
  let at = session.now();
  for (const [what, operation, outcome, stored] of steps) {
    // A refused operation has changed nothing: the same is stored since then.
    if (outcome === "granted") at = session.now();
    const answer = await operation(call).catch((error: Error) => {
      throw error instanceof EndpointError ? error : new UnexpectedReply(`${what}: ${error.message}`);
    });
    const { other = stored.value, retryAfter } = answer;
    const mistake =
      (answer.outcome !== outcome && `the answer is "${answer.outcome}"`) ||
      (outcome === "held" && other !== stored.value && "the answer has another value") ||
      (retryAfter !== undefined && session.ttlMistake({ ...stored, at }, retryAfter));
    if (mistake) throw new UnexpectedReply(`${what}: ${mistake}`);
    await session.mustBeStored({ ...stored, at }, what);
  }
  return { works: true };
}

/** Claims by `SET … NX PX`: in this dialect the first claim is native, too. */
export function askClaim(session: Session): Promise<Seen> {
  return follow(session, "redis-8.4", life(session, "nx").slice(0, 2));
}

/** Whether a lock is extended and ended natively, too, and runs claim by `SET … NX GET PX`. */
export function askNative(session: Session): Promise<Seen> {
  const run = life(session, "nx-get", false, claimOrRead).slice(0, 2);
  return follow(session, "redis-8.4", [...life(session, "native"), ...run]);
}

export function askEval(session: Session): Promise<Seen> {
  return follow(session, "redis", life(session, "script", true));
}

export async function askEvalsha(session: Session): Promise<Seen> {
  const unknown = randomUUID().replaceAll("-", "").padEnd(40, "0");
  const command = ["EVALSHA", unknown, 1, session.key("noscript")];
  const refusal = await session.ask(command).catch((error: Error) => error);
  if (!(refusal instanceof Error)) return { works: false, found: "it ran a script that it cannot know" };
  if (!refusal.message.includes("NOSCRIPT")) throw refusal;
  const [claimed, , extended] = life(session, "hash", true);
  return follow(session, "redis", [claimed!, extended!], true);
}

export async function askFlag(session: Session): Promise<Seen> {
  const { key, value } = await session.write(session.key("peek"), "v1");
  const script = textOf(peekScript.source, "upstash");
  const reply = await session.ask(["EVAL", script, 2, key, session.key("peek:fence"), "peek"]);
  const [found, remaining] = Array.isArray(reply) ? reply : [];
  const works = found === value && Number(remaining) > 0;
  return works ? { works } : { works, found: "it reads something else" };
}

/** Several commands of one turn, which the endpoint sends together if it can. */
export async function askPipeline(session: Session): Promise<Seen> {
  const [key, at] = [session.key("pipeline"), session.now()];
  const commands = [
    ["PING", "first"],
    ["EVALSHA", "0".repeat(40), 1, session.key("noscript")],
    ["SET", key, "v1", "PX", probeTtl],
    ["PING", "last"],
  ];
  const outcomes = await Promise.allSettled(commands.map((command) => session.ask(command)));
  const [first] = outcomes;
  // Without any reply, the whole request has failed.
  if (first!.status === "rejected") throw first!.reason;
  const replies = outcomes.map((each) => (each.status === "rejected" ? "refused" : each.value));
  if (replies.join() !== "first,refused,OK,last") {
    return { works: false, found: "the replies are not those of the commands" };
  }
  await session.mustBeStored({ key, value: "v1", ttl: probeTtl, at }, "after a SET");
  return { works: true };
}

/** A value of the size of the default `maxResult`, in bytes, is stored whole, and can be read. */
export async function askResult(session: Session): Promise<Seen> {
  await session.mustBeStored(await session.write(session.key("result"), "v".repeat(1_000_000)), "1 MB");
  return { works: true, found: "more was not tried" };
}

export async function askEviction(session: Session): Promise<Seen> {
  for (const command of [
    ["CONFIG", "GET", "maxmemory-policy"],
    ["INFO", "memory"],
  ]) {
    const reply = await session.ask(command).catch(() => undefined);
    const policy = /maxmemory[-_]policy[:,]\s*([a-z-]+)/.exec(String(reply))?.[1];
    if (policy) return { works: policy === "noeviction", found: policy };
  }
  return { found: "neither CONFIG GET nor INFO says it" };
}

/** A gateway that takes the path for the command SUBSCRIBE refuses all other commands from then on, of everybody. */
export async function askStream(session: Session): Promise<Seen> {
  if (!session.endpoint.subscribe) return { works: false, found: "no client of a Cluster subscribes here" };
  // As long as three requests may take.
  const listening = session.limited(
    (signal) => unlessAborted(hearsMessage(session, signal), signal),
    3 * session.settings.timeout,
  );
  const heard = await listening.catch((error: Error) => error);
  try {
    await session.ask(["PING"]);
  } catch (error) {
    // Silence may have other reasons.
    if (!(error instanceof EndpointError) || error.kind === "timeout") throw error;
    return { works: false, found: "it refuses all commands from then on" };
  }
  if (heard instanceof Error) throw heard;
  return heard ? { works: true } : { works: false, found: "no message in time" };
}

/** Publishes when the subscription is active, and listens until the message arrives. False: the stream has ended. */
async function hearsMessage(session: Session, signal: AbortSignal): Promise<boolean> {
  const channel = session.key("channel");
  const body = await session.endpoint.subscribe!(channel, signal);
  const split = lineSplitter();
  const decoder = new TextDecoder();
  for await (const piece of body) {
    const kinds = split(decoder.decode(piece, { stream: true })).map((line) => parseEvent(line)?.kind);
    if (kinds.includes("message")) return true;
    if (kinds.includes("subscribed")) await session.ask(["PUBLISH", channel, "free"]);
  }
  return false;
}
