import {
  type Command,
  type Dialect,
  type Endpoint,
  EndpointError,
  type EndpointErrorKind,
} from "redlock-edge";
import { checkOptions } from "../../../lock-server/src/check.ts";
import { ReplyError } from "../../../lock-server/src/engine/reply-error.ts";
import type { Reply } from "../../../lock-server/src/twins/twin.ts";
import { checkDialect } from "../engine/dialect.ts";
import { Engine, type Push } from "../engine/engine.ts";
import { type EventStream, eventOf, eventStream } from "../event-stream.ts";
import { type FaultPlan, type FaultRule, Faults } from "../faults/faults.ts";
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

const optionNames: Readonly<Record<keyof MemoryEndpointOptions, 1>> = {
  name: 1,
  dialect: 1,
  runtime: 1,
  clockOffset: 1,
  faults: 1,
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
   *
   * @param command SUBSCRIBE, with its channels
   */
  stream(command: Command, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
  subscribe(channel: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>>;
  /** Stops it as a crash does: requests that arrive from now on, delayed ones included, are refused; streams break. */
  stop(): void;
  /** Starts it again. `memory: "kept"` (default) with its data; `"lost"` with neither data nor cached scripts. */
  start(options?: { readonly memory?: "kept" | "lost" }): void;
}

// How long a reordered request waits at most for the next one to overtake it, in ms.
const reorderLimit = 1000;

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
  checkOptions("memoryEndpoint", options, optionNames);
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
  #running = true;
  /** Execute the requests that wait for the next one to overtake them. */
  #overtakable: (() => void)[] = [];
  readonly #streams = new Set<EventStream>();

  constructor(options: MemoryEndpointOptions) {
    this.name = options.name ?? "memory";
    this.dialect = checkDialect(options.dialect) ?? "upstash";
    this.clockOffset = options.clockOffset ?? 0;
    this.#runtime = options.runtime ?? systemRuntime;
    this.faults = new Faults(options.faults, () => this.#runtime.random());
    this.engine = new Engine({
      dialect: this.dialect,
      now: () => this.#runtime.now() + this.#offset(),
    });
  }

  stop(): void {
    this.#running = false;
    for (const stream of this.#streams) stream.end(this.#connectionFailed("reset"));
  }

  start({ memory = "kept" }: { readonly memory?: "kept" | "lost" } = {}): void {
    if (memory === "lost") this.engine.flush();
    this.#running = true;
  }

  send(command: Command, signal: AbortSignal): Promise<Reply> {
    return this.#request(command, signal, { execute: (sent) => this.engine.execute(sent) });
  }

  async stream(command: Command, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    const stream = await this.#request(command, signal, {
      execute: (sent) => this.#open(sent, signal),
      discard: (opened) => opened.end(),
    });
    const timer: Runtime["timer"] = (ms, callback) => this.#runtime.timer(ms, callback);
    return withStreamFaults(stream.body, { faults: this.faults, command: String(command[0]), timer });
  }

  subscribe(channel: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    return this.stream(["SUBSCRIBE", channel], signal);
  }

  #open([name, ...names]: Command, signal: AbortSignal): EventStream {
    if (String(name).toUpperCase() !== "SUBSCRIBE") {
      throw new ReplyError(`ERR Command is not available: '${name}'`);
    }
    if (names.length === 0) throw new ReplyError("ERR wrong number of arguments for 'subscribe' command");
    const abort = () => stream.end(this.#error("timeout", "aborted", { cause: signal.reason }));
    const stream = eventStream(() => {
      signal.removeEventListener("abort", abort);
      this.#streams.delete(stream);
      unsubscribe();
      const command = ["UNSUBSCRIBE", ...names];
      this.log.push({ command, billed: 1, at: this.#runtime.now(), outcome: "replied" });
    });
    const send = (push: Push) => stream.send(eventOf(push));
    const unsubscribe = this.engine.subscribe(names.map(String), send);
    this.#streams.add(stream);
    signal.addEventListener("abort", abort);
    return stream;
  }

  #request<Answer>(command: Command, signal: AbortSignal, operation: Operation<Answer>): Promise<Answer> {
    return new Promise((resolve, reject) => {
      const abandon = () => {
        signal.removeEventListener("abort", abandon);
        reject(this.#error("timeout", reasonOf(signal), { cause: signal.reason }));
      };
      if (signal.aborted) {
        abandon();
        return;
      }
      signal.addEventListener("abort", abandon);
      const answer = (settlePromise: () => void) => {
        signal.removeEventListener("abort", abandon);
        settlePromise();
      };
      this.#transmit(command, {
        ...operation,
        reply(reply) {
          if (signal.aborted) operation.discard?.(reply);
          answer(() => resolve(reply));
        },
        fail: (error) => answer(() => reject(error)),
      });
    });
  }

  /** Sends a request to the engine and its reply back, with the faults of the plan. */
  #transmit<Answer>(command: Command, client: Client<Answer>): void {
    const entry: Writable<LogEntry> = {
      command: [...command],
      billed: 0,
      at: this.#runtime.now(),
      outcome: "pending",
    };
    this.log.push(entry);
    const plan = this.faults.plan(String(command[0]));
    if (plan.down || plan.dropRequest) {
      entry.outcome = "not executed";
      if (plan.down) client.fail(this.#connectionFailed("refused"));
      else if (plan.reset) client.fail(this.#connectionFailed("reset"));
      return;
    }
    this.#wait(plan.delay, () => {
      const arrive = () => this.#arrive(entry, plan, client);
      if (plan.reorder) this.#afterNext(arrive);
      else arrive();
    });
  }

  /** Handles a request that reached the server, or the gateway in front of it. */
  #arrive<Answer>(entry: Writable<LogEntry>, plan: FaultPlan, client: Client<Answer>): void {
    const { status } = plan;
    if (this.#running && status === undefined) {
      this.#execute(entry, plan, client);
      return;
    }
    entry.outcome = "not executed";
    if (!this.#running) client.fail(this.#connectionFailed("refused"));
    else client.fail(this.#error("http", `HTTP ${status}`, status === undefined ? {} : { status }));
  }

  #execute<Answer>(entry: Writable<LogEntry>, plan: FaultPlan, client: Client<Answer>): void {
    let executed = this.#run(entry, client);
    if (plan.duplicate) {
      executed.discard();
      executed = this.#run(entry, client);
    }
    const overtaken = this.#overtakable;
    this.#overtakable = [];
    for (const execute of overtaken) execute();

    if (plan.dropReply) {
      entry.outcome = "reply lost";
      executed.discard();
      if (plan.reset) client.fail(this.#connectionFailed("reset"));
    } else {
      this.#wait(plan.delayReply, executed.deliver);
    }
  }

  /** Executes the command and returns functions of which one is called: its reply is delivered, or nobody needs it. */
  #run<Answer>(
    entry: Writable<LogEntry>,
    client: Client<Answer>,
  ): { readonly deliver: () => void; readonly discard: () => void } {
    const before = this.engine.billed;
    try {
      const reply = client.execute(entry.command);
      entry.outcome = "replied";
      return { deliver: () => client.reply(reply), discard: () => client.discard?.(reply) };
    } catch (error) {
      entry.outcome = "refused";
      const message = error instanceof ReplyError ? unquoted(error.message) : undefined;
      // Any other error is a defect of the engine and must not look like an error of Redis.
      const failure = message === undefined ? error : this.#error("redis", `Redis refused: ${message}`);
      return { deliver: () => client.fail(failure), discard: () => undefined };
    } finally {
      entry.billed += this.engine.billed - before;
    }
  }

  #afterNext(execute: () => void): void {
    let waiting = true;
    const once = () => {
      if (!waiting) return;
      waiting = false;
      cancel();
      this.#overtakable = this.#overtakable.filter((other) => other !== once);
      execute();
    };
    const cancel = this.#runtime.timer(reorderLimit, once);
    this.#overtakable.push(once);
  }

  #wait(ms: number, next: () => void): void {
    if (ms > 0) this.#runtime.timer(ms, next);
    else next();
  }

  #offset(): number {
    return typeof this.clockOffset === "function" ? this.clockOffset() : this.clockOffset;
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
  discard?(answer: Answer): void;
}

/** Settles the promise of a request. Has no effect once its signal has aborted. */
interface Client<Answer> extends Operation<Answer> {
  reply(answer: Answer): void;
  fail(error: unknown): void;
}

type Writable<Type> = { -readonly [Field in keyof Type]: Type[Field] };

/** Why nobody waits any more. */
const reasonOf = ({ reason }: AbortSignal) => (reason instanceof Error ? reason.message : String(reason));

/** A server's error up to where it quotes the command, which may have secrets. */
const unquoted = (message: string) => message.split(/,? (?:with args beginning|command was)|["[{]/)[0];
