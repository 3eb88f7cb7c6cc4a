import { ReplyError } from "../../../lock-server/src/engine/reply-error.ts";
import type { Reply } from "../../../lock-server/src/twins/twin.ts";
import type { WireReply } from "./redis/resp.ts";

/** The result of one command. */
export interface Outcome {
  /** The reply; a `ReplyError` if the command failed. */
  readonly reply: WireReply;
  /** Commands that Upstash would bill for it: itself, and each `redis.call` of a script. */
  readonly billed: number;
}

/** A command with its arguments. */
export type Command = readonly string[];

/** A command's name in upper case. */
export const nameOf = ([name = ""]: Command): string => name.toUpperCase();

/** Runs the commands of one endpoint: the embedded engine, or a Redis server. */
export interface Backend {
  /** Runs one command. A failing command resolves with its error; rejects only when the backend cannot be reached. */
  execute(command: Command): Promise<Outcome>;
  /**
   * Runs all commands with nothing in between. A command that fails while it runs has its error as its outcome; the
   * others run nevertheless. Resolves with a single `ReplyError` when the whole transaction was discarded, because of
   * an unknown command or a wrong number of arguments; then no command was run.
   */
  transaction(commands: readonly Command[]): Promise<readonly Outcome[] | ReplyError>;
  /**
   * Subscribes by SUBSCRIBE or PSUBSCRIBE with at least one name, and resolves with a function that unsubscribes; or with
   * the error of Redis, when it refuses. Rejects when the backend cannot be reached.
   */
  subscribe(command: Command, subscriber: Subscriber): Promise<(() => void) | ReplyError>;
  /** Closes the connection, if there is one. Subscriptions end with the requests that opened them. */
  close(): Promise<void>;
}

/** What a subscription tells. */
export interface Subscriber {
  /** A confirmation or a message, as Redis pushes it: `["message", channel, payload]`. */
  push(words: readonly WireReply[]): void;
  /** The subscription has ended without being unsubscribed: the connection broke. */
  lost(error: Error): void;
}

/** The backend cannot be reached: the server is down, or the connection broke before it replied. */
export class BackendGoneError extends Error {
  override readonly name = "BackendGoneError";
}

/** Array.isArray does not know arrays that nobody may change. */
const isArray: (reply: WireReply) => reply is readonly WireReply[] = Array.isArray;

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** A reply as strings and numbers: bytes that are not valid UTF-8 become U+FFFD. Throws a reply that is an error. */
export function plainReply(reply: WireReply): Reply {
  if (reply instanceof ReplyError) throw reply;
  if (reply instanceof Uint8Array) return utf8.decode(reply);
  if (!isArray(reply)) return reply;
  return reply.map((item) => (item instanceof ReplyError ? item.message : plainReply(item)));
}
