import { type Command, type Dialect, type Endpoint, withoutSecrets } from "../endpoints/endpoint.ts";
import { EndpointError, type EndpointErrorKind } from "../errors.ts";
import { type Runtime, systemRuntime } from "../runtime.ts";
import { type Reply, ReplyError } from "./commands/reply.ts";
import { Engine } from "./engine.ts";
import { type FaultPlan, type FaultRule, Faults } from "./faults.ts";

/** How a {@link memoryEndpoint} begins. */
export interface MemoryEndpointOptions {
  /** Names it in votes, errors and events. Default `"memory"`. */
  readonly name?: string;
  /** Whose commands it knows. Default `"upstash"`; `"redis"` is Redis 7. */
  readonly dialect?: Dialect;
  /** Where its clock, its timers and its randomness come from. Default: the platform. */
  readonly runtime?: Runtime;
  /** How many ms its clock is ahead of the runtime's; a function for a clock that drifts. Default 0. */
  readonly clockOffset?: number | (() => number);
  /** What goes wrong from the beginning. Default: nothing. */
  readonly faults?: readonly FaultRule[];
}

/** One request to a {@link MemoryEndpoint}, in the order of arrival. */
export interface LogEntry {
  readonly command: Command;
  /** Commands that Upstash would bill for it; 0 until it is executed. */
  readonly billed: number;
  /** When it arrived, by the runtime's wall clock. */
  readonly at: number;
  /**
   * `pending`: on its way. `replied`: executed, and Redis's reply was sent. `refused`: executed, and Redis's
   * error was sent. `reply lost`: executed, and nobody heard of it. `not executed`: it never will be.
   */
  readonly outcome: "pending" | "replied" | "refused" | "reply lost" | "not executed";
}

/** A Redis in this process that behaves like one at the other end of a bad network. */
export interface MemoryEndpoint extends Endpoint {
  readonly exactReplies: true;
  /** Its data: execute commands past the network and past all faults. */
  readonly engine: Engine;
  /** What goes wrong; rules can be added and removed at any time. */
  readonly faults: Faults;
  /** Every request so far. Empty it as you like. */
  readonly log: LogEntry[];
  /** ms that its clock is ahead of the runtime's; may be changed at any time. */
  clockOffset: number | (() => number);
  /** Crashes it: what arrives from now on is refused. Requests under way go on until they arrive. */
  stop(): void;
  /** Starts it again. `memory: "lost"` starts it empty: no persistence. Default `"kept"`. */
  start(options?: { readonly memory?: "kept" | "lost" }): void;
}

// How long a reordered request waits for another one to overtake it.
const reorderLimit = 1000;

/**
 * An endpoint with an {@link Engine} instead of a server, for tests: no network, no account, and every fault
 * that a network can have.
 *
 * A request whose `signal` aborts rejects at once, and is executed nevertheless if it was on its way: that is
 * what a timeout means over HTTP.
 *
 * @example
 * const endpoint = memoryEndpoint();
 * const redlock = new Redlock({ endpoints: [endpoint] });
 * endpoint.faults.add({ fault: "drop-reply", times: 1 });
 * await redlock.acquire("invoice:42"); // in spite of the lost reply
 * @throws TypeError | RangeError for a fault that cannot be
 */
export function memoryEndpoint(options: MemoryEndpointOptions = {}): MemoryEndpoint {
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
  /** Requests that wait for another one to be executed before them. */
  #overtakable: (() => void)[] = [];

  constructor(options: MemoryEndpointOptions) {
    this.name = options.name ?? "memory";
    this.dialect = options.dialect ?? "upstash";
    this.clockOffset = options.clockOffset ?? 0;
    this.#runtime = options.runtime ?? systemRuntime;
    this.faults = new Faults(options.faults, () => this.#runtime.random());
    this.engine = new Engine({ dialect: this.dialect, now: () => this.#runtime.now() + this.#offset() });
  }

  stop(): void {
    this.#running = false;
  }

  start({ memory = "kept" }: { readonly memory?: "kept" | "lost" } = {}): void {
    if (memory === "lost") this.engine.flush();
    this.#running = true;
  }

  send(command: Command, signal: AbortSignal): Promise<Reply> {
    return new Promise((resolve, reject) => {
      const abandon = () => {
        signal.removeEventListener("abort", abandon);
        reject(this.#error("timeout", "no answer in time", { cause: signal.reason }));
      };
      if (signal.aborted) {
        abandon();
        return;
      }
      signal.addEventListener("abort", abandon);
      const answer = (settle: () => void) => {
        signal.removeEventListener("abort", abandon);
        settle();
      };
      this.#transmit(command, {
        reply: (reply) => answer(() => resolve(reply)),
        fail: (error) => answer(() => reject(error)),
      });
    });
  }

  /** Takes a request to the engine and its answer back, with everything that the faults do on the way. */
  #transmit(command: Command, client: Client): void {
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
      if (plan.reorder) this.#afterTheNext(arrive);
      else arrive();
    });
  }

  /** A request has reached the server, if there is one. */
  #arrive(entry: Writable<LogEntry>, plan: FaultPlan, client: Client): void {
    const { status } = plan;
    if (this.#running && status === undefined) {
      this.#execute(entry, plan, client);
      return;
    }
    entry.outcome = "not executed";
    if (!this.#running) client.fail(this.#connectionFailed("refused"));
    else client.fail(this.#error("http", `HTTP ${status}`, status === undefined ? {} : { status }));
  }

  #execute(entry: Writable<LogEntry>, plan: FaultPlan, client: Client): void {
    const before = this.engine.billed;
    let deliver = this.#ask(entry, client);
    if (plan.duplicate) deliver = this.#ask(entry, client);
    entry.billed = this.engine.billed - before;
    const overtaken = this.#overtakable;
    this.#overtakable = [];
    for (const execute of overtaken) execute();

    if (plan.dropReply) {
      entry.outcome = "reply lost";
      if (plan.reset) client.fail(this.#connectionFailed("reset"));
    } else {
      this.#wait(plan.delayReply, deliver);
    }
  }

  /** Has the engine execute the command; the returned function hands its answer to the client. */
  #ask(entry: Writable<LogEntry>, client: Client): () => void {
    try {
      const reply = this.engine.execute(entry.command);
      entry.outcome = "replied";
      return () => client.reply(reply);
    } catch (error) {
      entry.outcome = "refused";
      // Anything but an error reply is a defect of the engine, which must not look like one of Redis.
      if (!(error instanceof ReplyError)) return () => client.fail(error);
      const message = withoutSecrets(error.message, entry.command);
      return () => client.fail(this.#error("redis", `Redis refused: ${message}`));
    }
  }

  #afterTheNext(execute: () => void): void {
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

/** Who waits for the answer; not any more once its signal has aborted. */
interface Client {
  reply(reply: Reply): void;
  fail(error: unknown): void;
}

type Writable<Type> = { -readonly [Field in keyof Type]: Type[Field] };
