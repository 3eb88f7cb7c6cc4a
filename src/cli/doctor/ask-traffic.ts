import { randomUUID } from "node:crypto";
import { unlessAborted } from "../../abort.ts";
import { EndpointError } from "../../index.ts";
import { lineSplitter, parseEvent } from "../../wake-up/events.ts";
import { probeTtl, type Seen, type Session } from "./session.ts";
import { mustBeStored } from "./stored.ts";

// What a conformance check asks of requests, replies and streams.

/** How many are asked at the same time. */
const questions = 10;

export async function askReplies(session: Session): Promise<Seen> {
  const texts = Array.from({ length: questions }, () => randomUUID());
  const replies = await Promise.all(texts.map((text) => session.ask(["PING", text], session.open())));
  const right = replies.filter((reply, index) => reply === texts[index]).length;
  return { works: right === questions, found: `${right} of ${questions}` };
}

/** Several commands of one turn, which the endpoint sends together if it can. */
export async function askPipeline(session: Session): Promise<Seen> {
  const key = session.key("pipeline");
  const commands = [
    ["PING", "first"],
    ["EVALSHA", "0".repeat(40), 1, session.key("noscript")],
    ["SET", key, "v1", "PX", probeTtl],
    ["PING", "last"],
  ];
  const endpoint = session.open();
  const outcomes = await Promise.allSettled(commands.map((command) => session.ask(command, endpoint)));
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

/** As long as three requests may take. */
async function askForStream(session: Session): Promise<Seen> {
  const heard = await session.limited(
    (signal) => unlessAborted(hearsMessage(session, signal), signal),
    3 * session.settings.timeout,
  );
  return heard ? { works: true } : { works: false, found: "no message in time" };
}

/** Publishes once the subscription stands, and listens until the message comes; false: the stream has ended. */
async function hearsMessage(session: Session, signal: AbortSignal): Promise<boolean> {
  const channel = session.key("channel");
  const body = await session.open().subscribe!(channel, signal);
  const split = lineSplitter();
  const decoder = new TextDecoder();
  for await (const piece of body) {
    const kinds = split(decoder.decode(piece, { stream: true })).map((line) => parseEvent(line)?.kind);
    if (kinds.includes("message")) return true;
    if (kinds.includes("subscribed")) await session.ask(["PUBLISH", channel, "free"]);
  }
  return false;
}
