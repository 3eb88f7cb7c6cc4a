import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { EndpointError } from "../index.ts";
import { lineSplitter, parseEvent } from "../lock/wake-up/events.ts";
import { cellScript } from "../redis/cell.lua.ts";
import { peekScript } from "../redis/peek.lua.ts";
import { textOf } from "../redis/script.ts";
import { memberScript } from "../sync/internal/member.lua.ts";
import { type ConformanceSession, probeTtl, type Seen, UnexpectedReply } from "./conformance-session.ts";

// What a conformance check asks one endpoint: what the library sends, as it sends it. Each has keys of its own, and trusts
// what is stored more than what is answered: if a gateway sends requests twice, only that is found. What the answers mean
// is in conformance-advice.ts.

const works: Seen = { works: true };
const fails = (found: string): Seen => ({ works: false, found });

/** How many requests show that each is executed once; how many are asked at the same time; how often it writes and reads. */
const counts = { executions: 10, questions: 10, rounds: 10 };

/** Sizes of values, in bytes, the largest first: that of the default `maxResult`, and smaller ones. */
const valueSizes = [1_000_000, 500_000, 250_000, 100_000, 50_000, 10_000] as const;

export async function askRest(session: ConformanceSession): Promise<Seen> {
  return (await session.ask(["PING"])) === "PONG" ? works : fails("it answers PING with something else");
}

export async function askToken(session: ConformanceSession): Promise<Seen> {
  await store(session, session.key("token"), "v");
  return works;
}

export async function askNx(session: ConformanceSession): Promise<Seen> {
  const [key, brief] = [session.key("nx"), session.key("brief")];
  await session.ask(["SET", brief, "v1", "NX", "PX", 1]);
  const set = (name: string, value: string) => session.ask(["SET", name, value, "NX", "PX", probeTtl]);
  if ((await set(key, "v1")) !== "OK" && !(await has(session, key, "v1"))) return fails("nothing was stored");
  if ((await set(key, "v2")) !== null) return fails("NX has overwritten a value");
  const remaining = await session.ask(["PTTL", key]);
  if (!isTtl(remaining)) return fails("PX has set no ttl");
  await sleep(5);
  const isFree = (await set(brief, "v2")) === "OK" || (await has(session, brief, "v2"));
  return isFree ? works : fails("a key did not expire");
}

export async function askNxGet(session: ConformanceSession): Promise<Seen> {
  const key = session.key("nx-get");
  const set = (value: string) => session.ask(["SET", key, value, "NX", "GET", "PX", probeTtl]);
  const first = await set("v1");
  if (first !== null && first !== "v1") return fails("it returned something that was not there");
  return (await set("v2")) === "v1" ? works : fails("it did not return the value in the way");
}

export async function askIfEqual(session: ConformanceSession): Promise<Seen> {
  const key = session.key("ifeq");
  await store(session, key, "v1");
  const set = (value: string) => session.ask(["SET", key, value, "IFEQ", "v1", "PX", probeTtl]);
  if ((await set("v2")) !== "OK" && !(await has(session, key, "v2"))) return fails("an equal value stayed");
  return (await set("v3")) === null ? works : fails("another value was overwritten");
}

export async function askDelex(session: ConformanceSession): Promise<Seen> {
  const key = session.key("delex");
  await store(session, key, "v1");
  const remove = (value: string) => session.ask(["DELEX", key, "IFEQ", value]);
  const kept = await remove("v2").catch(async (error: Error) => {
    const deleted = await session.ask(["DELIFEQ", key, "v1"]).catch(() => undefined);
    throw deleted === 1 ? new UnexpectedReply("it has DELIFEQ, which the library does not use") : error;
  });
  if (kept !== 0) return fails("another value was deleted");
  return (await remove("v1")) === 1 || (await has(session, key, null))
    ? works
    : fails("an equal value stayed");
}

export async function askFlag(session: ConformanceSession): Promise<Seen> {
  const keys = [session.key("peek"), session.key("peek:fence")];
  const reply = await session.ask(["EVAL", textOf(peekScript.source, "upstash"), 2, ...keys, "peek"]);
  return Array.isArray(reply) && reply[1] === -2 ? works : fails("the script's reply is another one");
}

export async function askScript(session: ConformanceSession, how: Evaluation): Promise<Seen> {
  await drawFence(session, "script", how);
  return works;
}

/** How a script is sent. */
type Evaluation = "EVAL" | "EVALSHA";

/** Acquires a lock with the library's own script, and returns its fence. Each execution draws one that is larger by 1. */
async function drawFence(session: ConformanceSession, name: string, how: Evaluation): Promise<number> {
  const keys = [session.key(name), session.key(`${name}:void`), session.key(`${name}:fence`)];
  const value = `c${keys[0]}`;
  const args = ["acquire", value, 1, 1, probeTtl, value, 1, probeTtl];
  const script = how === "EVAL" ? cellScript.source : cellScript.sha.redis;
  const reply = await session.ask([how, script, keys.length, ...keys, ...args]);
  const [echo, fence] = Array.isArray(reply) ? reply : [];
  if (echo !== value || !(Number(fence) > 0)) throw new UnexpectedReply("the script's reply is another one");
  return Number(fence);
}

export async function askNoscript(session: ConformanceSession): Promise<Seen> {
  const unknown = randomUUID().replaceAll("-", "").padEnd(40, "0");
  const reply = session.ask(["EVALSHA", unknown, 1, session.key("noscript")]);
  return reply.then(
    () => fails("it ran a script that it cannot know"),
    (error: Error) => {
      if (error.message.includes("NOSCRIPT")) return works;
      throw error;
    },
  );
}

export async function askDeadline(session: ConformanceSession): Promise<Seen> {
  const keys = [session.key("members"), session.key("members:void")];
  const member = `m${keys[0]}`;
  const args = ["acquire", member, 2, probeTtl, 1, "", "", 0];
  const reply = await session.ask(["EVAL", memberScript.source, keys.length, ...keys, ...args]);
  if (!Array.isArray(reply) || reply[0] !== member) return fails("the script's reply is another one");
  return isTtl(await session.ask(["PTTL", keys[0]!])) ? works : fails("PEXPIREAT has set no ttl");
}

export async function askPipeline(session: ConformanceSession): Promise<Seen> {
  const unknown = "0".repeat(40);
  const { outcomes, wasAlone } = await session.askTogether([
    ["PING", "first"],
    ["EVALSHA", unknown, 1, session.key("noscript")],
    ["PING", "last"],
  ]);
  if (wasAlone) return fails("it takes one command per request");
  const [first, middle, last] = outcomes;
  // Without any reply, the whole request has failed.
  for (const each of [first, last]) if (each?.status === "rejected") throw each.reason;
  const isInOrder = [first, last].map((each) => (each as PromiseFulfilledResult<unknown>).value).join();
  return isInOrder === "first,last" && middle?.status === "rejected"
    ? works
    : fails("the replies are not those of the commands");
}

/** @param how how scripts can be sent */
export async function askExecutions(session: ConformanceSession, how: Evaluation): Promise<Seen> {
  const { executions } = counts;
  const before = await drawFence(session, "once", how);
  let last = before;
  for (let sent = 0; sent < executions; sent += 1) last = await drawFence(session, "once", how);
  const executed = last - before;
  const found = `${executions} requests, ${executed} executions`;
  return { works: executed === executions, found };
}

export async function askReplies(session: ConformanceSession): Promise<Seen> {
  const { questions } = counts;
  const texts = Array.from({ length: questions }, () => randomUUID());
  const replies = await Promise.all(texts.map((text) => session.ask(["PING", text], session.connection())));
  const right = replies.filter((reply, index) => reply === texts[index]).length;
  return { works: right === questions, found: `${right} of ${questions}` };
}

/**
 * Writes, and reads at once over two other connections: as a program reads, and as the library does.
 *
 * @param hasScripts whether scripts can be sent
 */
export async function askReads(session: ConformanceSession, hasScripts: boolean): Promise<Seen> {
  const key = session.key("reads");
  const readers = [session.connection(), session.connection()] as const;
  const stale = { GET: 0, scripts: 0 };
  for (let round = 1; round <= counts.rounds; round += 1) {
    const value = `v${round}`;
    await store(session, key, value);
    const [read, peeked] = await Promise.all([
      session.ask(["GET", key], readers[0]),
      hasScripts ? session.ask(["EVAL", peekScript.source, 1, key, "peek"], readers[1]) : [value],
    ]);
    if (read !== value) stale.GET += 1;
    if (!Array.isArray(peeked) || peeked[0] !== value) stale.scripts += 1;
  }
  const found = `stale: ${stale.GET} of ${counts.rounds} by GET, ${stale.scripts} by scripts`;
  return { works: stale.GET + stale.scripts === 0, found };
}

/** The largest value that can be stored. */
export async function askRequests(session: ConformanceSession): Promise<Seen> {
  const key = session.key("request");
  return largest(valueSizes, (size) => store(session, key, "v".repeat(size)));
}

/** The largest reply: a value that is read several times. */
export async function askLargeReplies(session: ConformanceSession): Promise<Seen> {
  const key = session.key("reply");
  const size = valueSizes.at(-1)!;
  await store(session, key, "v".repeat(size));
  return largest(valueSizes, async (bytes) => {
    const keys = Array.from({ length: bytes / size }, () => key);
    const reply = await session.ask(["MGET", ...keys]);
    const isWhole = Array.isArray(reply) && reply.every((value) => String(value).length === size);
    if (!isWhole || reply.length !== keys.length) throw new UnexpectedReply("a value was cut");
  });
}

/** Tries sizes until one is accepted. */
async function largest(sizes: readonly number[], attempt: (size: number) => Promise<unknown>): Promise<Seen> {
  let refusal: Error | undefined;
  for (const size of sizes) {
    try {
      await attempt(size);
      if (!refusal) return { works: true, found: "more was not tried" };
      return fails(`${size / 1_000} kB; more: ${withoutName(refusal)}`);
    } catch (error) {
      refusal ??= error as Error;
    }
  }
  throw refusal;
}

const withoutName = ({ message }: Error) => message.replace(/^\S+: /, "");

export async function askStream(session: ConformanceSession): Promise<Seen> {
  const channel = session.key("channel");
  let stage = "no stream";
  const listen = async (signal: AbortSignal) => {
    const body = await session.subscribe(channel, signal);
    stage = "no event of the subscription in time";
    const reader = body.getReader();
    const split = lineSplitter();
    const decoder = new TextDecoder();
    let isPublished = false;
    for (let piece = await reader.read(); piece.value; piece = await reader.read()) {
      const events = split(decoder.decode(piece.value, { stream: true })).map(parseEvent);
      if (events.some((event) => event?.kind === "released")) return works;
      if (isPublished || !events.some((event) => event?.kind === "subscribed")) continue;
      stage = "no message in time";
      isPublished = true;
      await session.ask(["PUBLISH", channel, 1]);
    }
    return fails("the stream has ended");
  };
  return session.within((signal) =>
    listen(signal).catch((error) => {
      if (error instanceof EndpointError) throw error;
      return fails(stage);
    }),
  );
}

export async function askEviction(session: ConformanceSession): Promise<Seen> {
  const policyOf = (text: unknown) => /maxmemory[-_]policy[:,]\s*([a-z-]+)/.exec(String(text))?.[1];
  const quietly = (command: readonly string[]) => session.ask(command).catch(() => undefined);
  const policy =
    policyOf(await quietly(["CONFIG", "GET", "maxmemory-policy"])) ??
    policyOf(await quietly(["INFO", "memory"]));
  return policy === undefined
    ? { found: "neither CONFIG GET nor INFO says it" }
    : { works: policy === "noeviction", found: policy };
}

export async function askWait(session: ConformanceSession): Promise<Seen> {
  const reply = await session.ask(["WAIT", 0, 100]);
  if (!Number.isSafeInteger(reply)) return fails("it does not return a number");
  return { works: true, found: `${reply} replicas acknowledge writes` };
}

async function store(session: ConformanceSession, key: string, value: string): Promise<void> {
  const reply = await session.ask(["SET", key, value, "PX", probeTtl]);
  if (reply !== "OK") throw new UnexpectedReply("SET is not answered with OK");
}

async function has(session: ConformanceSession, key: string, value: string | null): Promise<boolean> {
  return (await session.ask(["GET", key])) === value;
}

function isTtl(reply: unknown): boolean {
  return Number(reply) > 0 && Number(reply) <= probeTtl;
}
