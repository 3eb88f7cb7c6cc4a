import { type Reply, ReplyError } from "../testing/engine.ts";
import type { Argument } from "./argument.ts";
import { StatusReply, type WireReply } from "./redis/resp.ts";

/** What became of one command. */
export interface Outcome {
  /** The reply; a `ReplyError` when the command failed. */
  readonly reply: WireReply;
  /** Commands that Upstash would bill for it: itself, and each `redis.call` of a script. */
  readonly billed: number;
}

/** The Redis behind one endpoint: an engine in this process, or a server. */
export interface Backend {
  /** Runs one command. Rejects only when the backend cannot be reached; a failing command is an outcome. */
  execute(command: readonly Argument[]): Promise<Outcome>;
  /**
   * Runs all commands with nothing in between. One that fails while it runs has its error as its outcome, and the
   * others run. A single `ReplyError` says that the transaction was discarded as a whole, because of a command that
   * does not exist or has a wrong number of arguments: nothing of it was run.
   */
  transaction(commands: readonly (readonly Argument[])[]): Promise<readonly Outcome[] | ReplyError>;
  /** Lets go of the connection, if there is one. The backend is of no use afterwards. */
  close(): Promise<void>;
}

/** The backend cannot be reached: the server is down, or went away while it had the command. */
export class BackendGoneError extends Error {
  override readonly name = "BackendGoneError";
}

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

/** A reply as strings and numbers: bytes that are not UTF-8 become U+FFFD. A `ReplyError` is thrown. */
export function plainReply(reply: WireReply): Reply {
  if (reply instanceof ReplyError) throw reply;
  if (reply instanceof StatusReply) return reply.text;
  if (reply instanceof Uint8Array) return utf8.decode(reply);
  if (typeof reply === "number" || reply === null) return reply;
  return reply.map((item) => (item instanceof ReplyError ? item.message : plainReply(item)));
}
