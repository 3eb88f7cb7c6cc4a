import { Buffer } from "node:buffer";
import { performance } from "node:perf_hooks";
import { ReplyError } from "../../../../lock-server/src/engine/reply-error.ts";
import { eventOf, eventStream } from "../../event-stream.ts";
import { type Backend, type Command, nameOf } from "../backend.ts";
import type { CommandLog } from "../command-log.ts";
import type { WireReply } from "../redis/resp.ts";
import type { Caller } from "./command-runner.ts";

/**
 * Whether a request asks for a stream of events: SUBSCRIBE or PSUBSCRIBE in the path, by GET or POST, and
 * `Accept: text/event-stream`.
 */
export function asksForStream({
  method,
  url,
  headers,
}: Pick<Request, "method" | "url" | "headers">): boolean {
  return (
    /^\/p?subscribe(?:\/|$)/i.test(new URL(url).pathname) &&
    (method === "GET" || method === "POST") &&
    /\btext\/event-stream\b/i.test(headers.get("accept") ?? "")
  );
}

/** Opens streams of events. Logs the begin and the end of each subscription as one command that is billed. */
export class Streams {
  readonly #backend: Backend;
  readonly #log: CommandLog | undefined;

  constructor(backend: Backend, log: CommandLog | undefined) {
    this.#backend = backend;
    this.#log = log;
  }

  /**
   * Opens the stream of a command, and resolves with its body once Redis has confirmed it; or with the error, when it is
   * refused. Rejects when the backend cannot be reached.
   */
  async open(command: Command, { readOnly }: Caller): Promise<ReadableStream<Uint8Array> | ReplyError> {
    const started = performance.now();
    const at = Date.now();
    const refusal = refusalOf(command, readOnly);
    const stream = refusal ?? (await this.#subscribe(command));
    this.#log?.add({
      command: [nameOf(command), ...command.slice(1)],
      billed: refusal ? 0 : 1,
      at,
      ms: performance.now() - started,
      outcome: refusal ? "refused" : stream instanceof ReplyError ? "error" : "ok",
      ...(stream instanceof ReplyError && { error: stream.message }),
    });
    return stream;
  }

  async #subscribe(command: Command): Promise<ReadableStream<Uint8Array> | ReplyError> {
    // Set below. A stream that overflows or breaks before that is ended afterwards.
    let unsubscribe: (() => void) | undefined;
    let ended = false;
    const stream = eventStream(() => {
      ended = true;
      unsubscribe?.();
    });
    const subscribed = await this.#backend.subscribe(command, {
      push: (words) => stream.send(eventOf(words.map(textOf))),
      lost: (error) => stream.end(error),
    });
    if (subscribed instanceof ReplyError) return subscribed;
    unsubscribe = () => {
      subscribed();
      const ending = nameOf(command).replace("SUB", "UNSUB");
      const entry = { command: [ending, ...command.slice(1)], billed: 1, at: Date.now(), ms: 0 };
      this.#log?.add({ ...entry, outcome: "ok" });
    };
    if (ended) unsubscribe();
    return stream.body;
  }
}

function refusalOf(command: Command, readOnly: boolean): ReplyError | undefined {
  const name = nameOf(command).toLowerCase();
  if (readOnly) {
    return new ReplyError(
      `NOPERM this user has no permissions to run the '${name}' command or its subcommand`,
    );
  }
  if (command.length > 1) return undefined;
  return new ReplyError(`ERR wrong number of arguments for '${name}' command`);
}

/** A part of a push. */
function textOf(part: WireReply): string {
  return part instanceof Uint8Array ? Buffer.from(part).toString() : String(part);
}
