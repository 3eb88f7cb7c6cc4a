import { randomUUID } from "node:crypto";
import { EndpointError } from "../index.ts";
import { lineSplitter, parseEvent } from "../lock/wake-up/events.ts";
import {
  type ConformanceSession,
  probeTtl,
  replyOf,
  type Seen,
  UnexpectedReply,
} from "./conformance-session.ts";
import { mustBeStored, write } from "./conformance-stored.ts";
import { clockText, maxClockDistance } from "./doctor-advice.ts";
import { readClock } from "./doctor-probe.ts";

// What a conformance check asks of requests, replies and streams.

const works: Seen = { works: true };
const fails = (found: string): Seen => ({ works: false, found });

/** How many are asked at the same time. */
const questions = 10;

/** Sizes of values, in bytes, the largest first: that of the default `maxResult`, and smaller ones. */
const valueSizes = [1_000_000, 500_000, 250_000, 100_000, 50_000, 10_000] as const;

export async function askRest(session: ConformanceSession): Promise<Seen> {
  return (await session.ask(["PING"])) === "PONG" ? works : fails("it answers PING with something else");
}

export async function askToken(session: ConformanceSession): Promise<Seen> {
  await store(session, session.key("token"), "v");
  return works;
}

export async function askReplies(session: ConformanceSession): Promise<Seen> {
  const texts = Array.from({ length: questions }, () => randomUUID());
  const replies = await Promise.all(texts.map((text) => session.ask(["PING", text], session.connection())));
  const right = replies.filter((reply, index) => reply === texts[index]).length;
  return { works: right === questions, found: `${right} of ${questions}` };
}

export async function askPipeline(session: ConformanceSession): Promise<Seen> {
  const key = session.key("pipeline");
  const unknown = "0".repeat(40);
  const { outcomes, wasAlone } = await session.askTogether([
    ["PING", "first"],
    ["EVALSHA", unknown, 1, session.key("noscript")],
    ["SET", key, "v1", "PX", probeTtl],
    ["PING", "last"],
  ]);
  if (wasAlone) return fails("it takes one command per request");
  const [first, refused, ...others] = outcomes;
  // Without any reply, the whole request has failed.
  const replies = [first!, ...others].map(replyOf);
  if (replies.join() !== "first,OK,last" || refused?.status !== "rejected") {
    return fails("the replies are not those of the commands");
  }
  await mustBeStored(session, { key, value: "v1" }, "after a SET");
  return works;
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

/** The largest value that can be stored, and is stored whole. */
export async function askRequests(session: ConformanceSession): Promise<Seen> {
  const key = session.key("request");
  return largest(valueSizes, async (size) => {
    const value = "v".repeat(size);
    await store(session, key, value);
    await mustBeStored(session, { key, value }).catch((error) => {
      // Whether it can be read is another question.
      if (!(error instanceof EndpointError)) throw error;
    });
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
  const listen = async (signal: AbortSignal, restart: () => void) => {
    const body = await session.subscribe(channel, signal);
    stage = "no event of the subscription in time";
    const reader = body.getReader();
    signal.addEventListener("abort", () => void reader.cancel().catch(() => undefined));
    const split = lineSplitter();
    const decoder = new TextDecoder();
    let isPublished = false;
    for (let piece = await reader.read(); piece.value; piece = await reader.read()) {
      const events = split(decoder.decode(piece.value, { stream: true })).map(parseEvent);
      if (events.some((event) => event?.kind === "released")) return works;
      if (isPublished || !events.some((event) => event?.kind === "subscribed")) continue;
      stage = "no message in time";
      isPublished = true;
      restart();
      await session.ask(["PUBLISH", channel, 1]);
      restart();
    }
    return fails(signal.aborted ? stage : "the stream has ended");
  };
  return session.within((signal, restart) =>
    listen(signal, restart).catch((error) => {
      if (error instanceof EndpointError && error.kind !== "timeout") throw error;
      return fails(stage);
    }),
  );
}

export async function askClock(session: ConformanceSession): Promise<Seen> {
  const { clock } = await readClock(session.endpoint, session);
  if (!clock) return {};
  return { works: Math.abs(clock.ahead) - clock.within <= maxClockDistance, found: clockText(clock) };
}

async function store(session: ConformanceSession, key: string, value: string): Promise<void> {
  const { reply } = await write(session, key, value);
  if (reply !== "OK") throw new UnexpectedReply("SET is not answered with OK");
}
