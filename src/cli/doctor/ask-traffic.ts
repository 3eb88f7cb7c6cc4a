import { randomUUID } from "node:crypto";
import { EndpointError } from "../../index.ts";
import { lineSplitter, parseEvent } from "../../lock/wake-up/events.ts";
import { type Ask, probeTtl, type Seen, type Session, UnexpectedReply } from "./session.ts";
import { setting, steps } from "./steps.ts";
import { mustBeStored } from "./stored.ts";

// What a conformance check asks of requests, replies and streams.

/** How many are asked at the same time. */
const questions = 10;

/** Sizes of values, in bytes, the largest first: that of the default `maxResult`, and smaller ones. */
const valueSizes = [1_000_000, 500_000, 250_000, 100_000, 50_000, 10_000] as const;

export const askToken: Ask = steps((session) => [
  { send: setting({ key: session.key("token"), value: "v" }), reply: "OK", when: "SET" },
]);

export async function askReplies(session: Session): Promise<Seen> {
  const texts = Array.from({ length: questions }, () => randomUUID());
  const replies = await Promise.all(texts.map((text) => session.ask(["PING", text], session.connection())));
  const right = replies.filter((reply, index) => reply === texts[index]).length;
  return { works: right === questions, found: `${right} of ${questions}` };
}

export async function askPipeline(session: Session): Promise<Seen> {
  const key = session.key("pipeline");
  const { outcomes, wasAlone } = await session.askTogether([
    ["PING", "first"],
    ["EVALSHA", "0".repeat(40), 1, session.key("noscript")],
    ["SET", key, "v1", "PX", probeTtl],
    ["PING", "last"],
  ]);
  if (wasAlone) return { works: false, found: "it takes one command per request" };
  const [first, refused, ...others] = outcomes;
  const replies = [first!, ...others].map((outcome) => {
    // Without any reply, the whole request has failed.
    if (outcome.status === "rejected") throw outcome.reason;
    return outcome.value;
  });
  if (replies.join() !== "first,OK,last" || refused?.status !== "rejected") {
    return { works: false, found: "the replies are not those of the commands" };
  }
  await mustBeStored(session, { key, value: "v1" }, "after a SET");
  return { works: true };
}

/** The largest reply: a value that is read several times. */
export async function askLargeReplies(session: Session): Promise<Seen> {
  const size = valueSizes.at(-1)!;
  const part = { key: session.key("reply"), value: "v".repeat(size) };
  await store(session, part);
  return largest(async (bytes) => {
    const keys = Array.from({ length: bytes / size }, () => part.key);
    const reply = await session.ask(["MGET", ...keys]);
    const isWhole = Array.isArray(reply) && reply.every((value) => value === part.value);
    if (!isWhole || reply.length !== keys.length) throw new UnexpectedReply("a value was cut");
  });
}

/** The largest value that can be stored, and is stored whole. */
export async function askRequests(session: Session): Promise<Seen> {
  const key = session.key("request");
  return largest(async (size) => {
    const whole = { key, value: "v".repeat(size) };
    await store(session, whole);
    await mustBeStored(session, whole).catch((error) => {
      // Whether it can be read is another question.
      if (!(error instanceof EndpointError)) throw error;
    });
  });
}

/** Tries sizes until one is accepted. */
async function largest(attempt: (size: number) => Promise<void>): Promise<Seen> {
  let refusal: Error | undefined;
  for (const size of valueSizes) {
    try {
      await attempt(size);
      if (!refusal) return { works: true, found: "more was not tried" };
      return { works: false, found: `${size / 1_000} kB; more: ${refusal.message.replace(/^\S+: /, "")}` };
    } catch (error) {
      refusal ??= error as Error;
    }
  }
  throw refusal;
}

async function store(
  session: Session,
  written: { readonly key: string; readonly value: string },
): Promise<void> {
  if ((await session.ask(setting(written))) !== "OK")
    throw new UnexpectedReply("SET is not answered with OK");
}

/** Listens, publishes once the subscription stands, and waits for the message: as long as three requests may take. */
/** A gateway that takes the path for the command SUBSCRIBE refuses all other commands from then on, of everybody. */
export async function askStream(session: Session): Promise<Seen> {
  const seen = await askForStream(session).catch((error: Error) => error);
  try {
    await session.ask(["PING"]);
  } catch (error) {
    // Silence may have other reasons.
    if (!(error instanceof EndpointError) || error.kind === "timeout") throw error;
    return { works: false, found: "it refuses all commands from then on" };
  }
  if (seen instanceof Error) throw seen;
  return seen;
}

async function askForStream(session: Session): Promise<Seen> {
  const channel = session.key("channel");
  let stage = "no stream";
  const listen = async (signal: AbortSignal): Promise<Seen> => {
    const body = await session.subscribe(channel, signal);
    stage = "no event of the subscription in time";
    const reader = body.getReader();
    signal.addEventListener("abort", () => void reader.cancel().catch(() => undefined));
    const split = lineSplitter();
    const decoder = new TextDecoder();
    for (let piece = await reader.read(); piece.value; piece = await reader.read()) {
      const kinds = split(decoder.decode(piece.value, { stream: true })).map(
        (line) => parseEvent(line)?.kind,
      );
      if (kinds.includes("released")) return { works: true };
      if (!kinds.includes("subscribed")) continue;
      stage = "no message in time";
      await session.ask(["PUBLISH", channel, 1]);
    }
    return { works: false, found: signal.aborted ? stage : "the stream has ended" };
  };
  const listening = (signal: AbortSignal) =>
    listen(signal).catch((error) => {
      if (error instanceof EndpointError && error.kind !== "timeout") throw error;
      return { works: false, found: stage };
    });
  return session.within(listening, 3);
}
