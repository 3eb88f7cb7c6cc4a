import { Buffer } from "node:buffer";
import { performance } from "node:perf_hooks";
import { ReplyError } from "../../../../lock-server/src/engine/reply-error.ts";
import { type EventStream, eventOf, eventStream } from "../../event-stream.ts";
import { type Argument, nameOf, textOf } from "../argument.ts";
import type { Backend } from "../backend.ts";
import type { CommandLog } from "../command-log.ts";
import type { WireReply } from "../redis/resp.ts";
import type { Caller } from "./command-runner.ts";

/** The commands that answer with a stream, and by which each of them ends. */
const endings: Readonly<Record<string, string | undefined>> = {
  SUBSCRIBE: "UNSUBSCRIBE",
  PSUBSCRIBE: "PUNSUBSCRIBE",
  MONITOR: undefined,
};

/**
 * Whether a request asks for a stream of events: SUBSCRIBE, PSUBSCRIBE or MONITOR in the path, by GET or POST, and
 * `Accept: text/event-stream`.
 */
export function asksForStream({
  method,
  url,
  headers,
}: Pick<Request, "method" | "url" | "headers">): boolean {
  const [, first = ""] = new URL(url).pathname.split("/");
  return (
    Object.hasOwn(endings, first.toUpperCase()) &&
    (method === "GET" || method === "POST") &&
    /\btext\/event-stream\b/i.test(headers.get("accept") ?? "")
  );
}

/** The open streams of one endpoint. Logs the begin and the end of each subscription as one command that is billed. */
export class Streams {
  readonly #backend: Backend;
  readonly #log: CommandLog | undefined;
  readonly #monitors = new Set<EventStream>();

  constructor(backend: Backend, log: CommandLog | undefined) {
    this.#backend = backend;
    this.#log = log;
  }

  /**
   * Opens the stream of a command, and resolves with its body once Redis has confirmed it; or with the error, when it is
   * refused. Rejects when the backend cannot be reached.
   */
  async open(
    command: readonly Argument[],
    { readOnly }: Caller,
  ): Promise<ReadableStream<Uint8Array> | ReplyError> {
    const started = performance.now();
    const at = Date.now();
    const note = (outcome: "ok" | "error" | "refused", error?: string) =>
      this.#log?.add({
        command: [nameOf(command), ...command.slice(1).map(textOf)],
        billed: outcome === "refused" ? 0 : 1,
        at,
        ms: performance.now() - started,
        outcome,
        ...(error !== undefined && { error }),
      });
    const refusal = refusalOf(command, readOnly);
    if (refusal) {
      note("refused", refusal.message);
      return refusal;
    }
    const stream = await (nameOf(command) === "MONITOR" ? this.#monitor() : this.#subscribe(command));
    if (stream instanceof ReplyError) note("error", stream.message);
    else note("ok");
    return stream;
  }

  /** Shows a command to those who monitor. */
  show(command: readonly Argument[]): void {
    if (this.#monitors.size === 0) return;
    const time = (Date.now() / 1000).toFixed(6);
    const event = eventOf([`${time} [0 0.0.0.0:0] ${command.map(quoted).join(" ")}`]);
    for (const monitor of this.#monitors) monitor.send(event);
  }

  async #subscribe(command: readonly Argument[]): Promise<ReadableStream<Uint8Array> | ReplyError> {
    // Set below. A stream that overflows or breaks before that is ended afterwards.
    let unsubscribe: (() => void) | undefined;
    let ended = false;
    const stream = eventStream(() => {
      ended = true;
      unsubscribe?.();
    });
    const subscribed = await this.#backend.subscribe(command, {
      push: (words) => stream.send(eventOf(words.map(byteString))),
      lost: (error) => stream.end(error),
    });
    if (subscribed instanceof ReplyError) return subscribed;
    unsubscribe = () => {
      subscribed();
      this.#noteEnd(command);
    };
    if (ended) unsubscribe();
    return stream.body;
  }

  async #monitor(): Promise<ReadableStream<Uint8Array>> {
    const stream = eventStream(() => this.#monitors.delete(stream));
    stream.send(eventOf(['"OK"']));
    this.#monitors.add(stream);
    return stream.body;
  }

  #noteEnd(command: readonly Argument[]): void {
    const [, ...names] = command.map(textOf);
    const ending = endings[nameOf(command)]!;
    this.#log?.add({ command: [ending, ...names], billed: 1, at: Date.now(), ms: 0, outcome: "ok" });
  }
}

function refusalOf(command: readonly Argument[], readOnly: boolean): ReplyError | undefined {
  const name = nameOf(command).toLowerCase();
  if (readOnly) {
    return new ReplyError(
      `NOPERM this user has no permissions to run the '${name}' command or its subcommand`,
    );
  }
  if ((name === "monitor") === (command.length === 1)) return undefined;
  return new ReplyError(`ERR wrong number of arguments for '${name}' command`);
}

/** A part of a push, as a string whose code units are bytes. */
function byteString(part: WireReply): string {
  return part instanceof Uint8Array ? Buffer.from(part).toString("latin1") : String(part);
}

const escapes: Readonly<Record<string, string>> = {
  '"': '\\"',
  "\\": "\\\\",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\x07": "\\a",
  "\b": "\\b",
};

/** An argument as MONITOR prints it: in quotes, and bytes that are not printable ASCII as `\xff`. */
function quoted(argument: Argument): string {
  const bytes = Buffer.from(argument as string).toString("latin1");
  const text = bytes.replace(
    /[^ !#-[\]-~]/g,
    (byte) => escapes[byte] ?? `\\x${byte.charCodeAt(0).toString(16).padStart(2, "0")}`,
  );
  return `"${text}"`;
}
