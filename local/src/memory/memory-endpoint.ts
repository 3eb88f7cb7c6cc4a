import {
  type Command,
  type Dialect,
  type Endpoint,
  EndpointError,
  type EndpointErrorKind,
} from "redlock-edge";
import { ReplyError } from "../../../lock-server/src/engine/reply-error.ts";
import type { Reply } from "../../../lock-server/src/twins/twin.ts";
import { checkOptions, later, type Schema, typed } from "../../../src/check/check.ts";
import { dialectCheck } from "../engine/dialect.ts";
import { Engine } from "../engine/engine.ts";
import { type EventStream, eventOf, eventStream } from "../event-stream.ts";
import { type FaultRule, Faults } from "../faults/faults.ts";
import { Line } from "../faults/line.ts";
import { withStreamFaults } from "../faults/stream-faults.ts";
import { type Runtime, systemRuntime } from "../runtime.ts";

/** Options of {@link memoryEndpoint}. */
export interface MemoryEndpointOptions {
  /** Its name in votes, errors and events. Default `"memory"`. */
  readonly name?: string;
  /**
   * The dialect that it speaks; what only another one has, it refuses. Default `"upstash"`.
   */
  readonly dialect?: Dialect;
  /** Its clock, timers and random numbers. Default: the platform's. */
  readonly runtime?: Runtime;
  /** ms by which its clock is ahead of the runtime's; a function for a clock that drifts. Default 0. */
  readonly clockOffset?: number | (() => number);
  /** Fault rules to start with. Default: none. */
  readonly faults?: readonly FaultRule[];
}

const schema: Schema<MemoryEndpointOptions> = {
  name: typed("string"),
  dialect: dialectCheck,
  runtime: typed("object"),
  clockOffset: later,
  faults: later,
};

/** One request to a {@link MemoryEndpoint}, in the order of arrival. The end of a stream is an entry UNSUBSCRIBE. */
export interface LogEntry {
  readonly command: Command;
  /** Commands that Upstash would bill for it; 0 until it is executed. */
  readonly billed: number;
  /** When it was sent, in ms since 1970 by the runtime's clock. */
  readonly at: number;
  /**
   * `pending`: not executed yet. `replied`: executed with a reply. `refused`: executed with an error of Redis. `reply
   * lost`: executed, but no answer was sent. `not executed`: it was lost or refused before execution.
   */
  readonly outcome: "pending" | "replied" | "refused" | "reply lost" | "not executed";
}

/** A Redis in this process that behaves like one behind an unreliable network. */
export interface MemoryEndpoint extends Endpoint {
  readonly exactReplies: true;
  /** The engine with its data. Its commands bypass all faults. */
  readonly engine: Engine;
  /** The fault rules. Add and remove them at any time. */
  readonly faults: Faults;
  /** Every request so far. May be emptied at any time. */
  readonly log: LogEntry[];
  /** ms by which its clock is ahead of the runtime's. May be changed at any time. */
  clockOffset: number | (() => number);
  /**
   * Subscribes as `POST /subscribe/<channel>` of Upstash's REST API does, and resolves with the body of the response when it
   * begins: server-sent events, `data: subscribe,<channel>,<count>` first, then `data: message,<channel>,<payload>`. The
   * request has all faults of its command, the stream those of streams and messages. Timers are the runtime's. It ends
   * when `signal` aborts, when the body is cancelled, and when the endpoint stops.
   */
  subscribe(channel: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
  /** Stops it as a crash does: requests that arrive from now on, delayed ones included, are refused; streams break. */
  stop(): void;
  /** Starts it again. `memory: "kept"` (default) with its data; `"lost"` with neither data nor cached scripts. */
  start(options?: { readonly memory?: "kept" | "lost" }): void;
}

/**
 * An endpoint for tests, with an {@link Engine} instead of a server: it needs no network and no account, and can have
 * every fault of a network.
 *
 * A request rejects as soon as its `signal` aborts, but may still be executed, as after a timeout over HTTP.
 *
 * @example
 * const endpoint = memoryEndpoint();
 * const redlock = new Redlock({ endpoints: [endpoint] });
 * endpoint.faults.add({ fault: "drop-reply", times: 1 });
 * await redlock.acquire("invoice:42"); // succeeds despite the lost reply
 * @throws TypeError | RangeError for a wrong option or an invalid fault rule
 */
export function memoryEndpoint(options: MemoryEndpointOptions = {}): MemoryEndpoint {
  checkOptions("memoryEndpoint", options, schema);
  return new InProcessEndpoint(options);
}

class InProcessEndpoint implements MemoryEndpoint {
  readonly name: string;
  readonly dialect: Dialect;
  readonly exactReplies = true;
  readonly engine: Engine;
  readonly faults: Faults;
  readonly log: LogEntry[] = [];
  clockOffset: number | (() => number);
  readonly #runtime: Runtime;
  readonly #line: Line;
  #running = true;
  readonly #streams = new Set<EventStream>();

  constructor(options: MemoryEndpointOptions) {
    const { name = "memory", dialect = "upstash", clockOffset = 0, runtime = systemRuntime } = options;
    this.name = name;
    this.dialect = dialect;
    this.clockOffset = clockOffset;
    this.#runtime = runtime;
    this.faults = new Faults(options.faults, () => runtime.random());
    this.#line = new Line(this.faults, this.#timer);
    this.engine = new Engine({ dialect, now: () => runtime.now() + this.#offset() });
  }

  // Looked up at each call: a test may replace it.
  readonly #timer: Runtime["timer"] = (ms, callback) => this.#runtime.timer(ms, callback);

  #offset(): number {
    return typeof this.clockOffset === "function" ? this.clockOffset() : this.clockOffset;
  }

  stop(): void {
    this.#running = false;
    this.#line.cut();
    for (const stream of this.#streams) stream.end(this.#connectionFailed("reset"));
  }

  start({ memory = "kept" }: { readonly memory?: "kept" | "lost" } = {}): void {
    if (memory === "lost") this.engine.flush();
    this.#running = true;
  }

  send(command: Command, signal: AbortSignal): Promise<Reply> {
    return this.#request(command, signal, {
      execute: (sent) => this.engine.execute(sent),
      discard: () => undefined,
    });
  }

  async subscribe(channel: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const { body } = await this.#request(["SUBSCRIBE", channel], signal, {
      execute: () => this.#open(channel, signal),
      discard: (opened) => opened.end(),
    });
    return withStreamFaults(body, { faults: this.faults, command: "SUBSCRIBE", timer: this.#timer });
  }

  #open(channel: string, signal: AbortSignal): EventStream {
    const abort = () => stream.end(this.#error("timeout", "aborted", { cause: signal.reason }));
    const stream = eventStream(() => {
      signal.removeEventListener("abort", abort);
      this.#streams.delete(stream);
      unsubscribe();
      const command = ["UNSUBSCRIBE", channel];
      this.log.push({ command, billed: 1, at: this.#runtime.now(), outcome: "replied" });
    });
    const unsubscribe = this.engine.subscribe([channel], (push) => stream.send(eventOf(push)));
    this.#streams.add(stream);
    signal.addEventListener("abort", abort);
    return stream;
  }

  /** Sends a request, which goes on if its signal aborts. */
  #request<Answer>(command: Command, signal: AbortSignal, operation: Operation<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const abandon = () => reject(this.#error("timeout", reasonOf(signal), { cause: signal.reason }));
      if (signal.aborted) return abandon();
      signal.addEventListener("abort", abandon, { once: true });
      const take = (answer: Answer) => {
        if (signal.aborted) operation.discard(answer);
        resolve(answer);
      };
      const end = () => signal.removeEventListener("abort", abandon);
      this.#carry(command, operation).then(take, reject).then(end);
    });
  }

  async #carry<Answer>(command: Command, { execute, discard }: Operation<Answer>): Promise<Answer> {
    const at = this.#runtime.now();
    const entry: Writable<LogEntry> = { command: [...command], billed: 0, at, outcome: "pending" };
    this.log.push(entry);
    const request = {
      execute: () => this.#run(entry, execute),
      discard: (executed: Executed<Answer>) => "answer" in executed && discard(executed.answer),
    };
    const carried = this.#running ? await this.#line.carry(String(command[0]), request) : "refused";
    if (typeof carried === "object" && "answer" in carried) {
      if ("answer" in carried.answer) return carried.answer.answer;
      throw carried.answer.error;
    }
    entry.outcome = entry.outcome === "pending" ? "not executed" : "reply lost";
    if (carried === "silence") return new Promise(() => undefined);
    if (typeof carried === "string") throw this.#connectionFailed(carried);
    const { status } = carried;
    throw this.#error("http", `HTTP ${status}`, { status });
  }

  #run<Answer>(entry: Writable<LogEntry>, execute: (sent: Command) => Answer): Executed<Answer> {
    const before = this.engine.billed;
    try {
      const answer = execute(entry.command);
      entry.outcome = "replied";
      return { answer };
    } catch (error) {
      entry.outcome = "refused";
      // Any other error is a defect of the engine and must not look like an error of Redis.
      if (!(error instanceof ReplyError)) return { error };
      return { error: this.#error("redis", `Redis refused: ${unquoted(error.message)}`) };
    } finally {
      entry.billed += this.engine.billed - before;
    }
  }

  #connectionFailed(how: "refused" | "reset"): EndpointError {
    return this.#error("network", `the request failed (connection ${how})`);
  }

  #error(kind: EndpointErrorKind, what: string, options?: ErrorOptions & { status?: number }): EndpointError {
    return new EndpointError(this.name, kind, what, options);
  }
}

/** What a request does when it arrives. */
interface Operation<Answer> {
  execute(command: Command): Answer;
  /** Ends what an answer keeps open, when nobody gets the answer. */
  discard(answer: Answer): void;
}

/** What an execution has led to. */
type Executed<Answer> = { readonly answer: Answer } | { readonly error: unknown };

type Writable<Type> = { -readonly [Field in keyof Type]: Type[Field] };

/** Why nobody waits any more. */
const reasonOf = ({ reason }: AbortSignal) => (reason instanceof Error ? reason.message : String(reason));

/** A server's error up to where it quotes the command, which may have secrets. */
const unquoted = (message: string) => message.split(/,? (?:with args beginning|command was)|["[{]/)[0];
