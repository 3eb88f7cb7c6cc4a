import { reporting } from "../endpoints/batch.ts";
import type { Command, Endpoint } from "../index.ts";
import { type Runtime, sleep } from "../runtime.ts";
import { StoppedError } from "./command.ts";
import { asFailure, type Failure } from "./doctor-probe.ts";

// The requests of one conformance check: counted, within the timeout, ended by Ctrl-C; and what they leave behind.

/** What the library needs of a server. */
export type Need =
  | "rest"
  | "token"
  | "nx"
  | "nx-get"
  | "ifeq"
  | "delex"
  | "eval"
  | "evalsha"
  | "noscript"
  | "flag"
  | "pexpireat"
  | "once"
  | "replies"
  | "pipeline"
  | "keys"
  | "values"
  | "reply"
  | "request"
  | "subscribe"
  | "clock"
  | "reads"
  | "kept"
  | "eviction"
  | "wait";

/** How to check. */
export interface ConformanceSettings {
  readonly prefix: string;
  /** ms per request */
  readonly timeout: number;
  /** Names the keys of this check. Unguessable. */
  readonly id: string;
  /** Aborts when the command is to end. */
  readonly stop: AbortSignal;
  readonly runtime: Runtime;
  /** Called with each request. */
  readonly onRequest?: () => void;
}

/**
 * How long the keys live that could not be deleted, in ms. Almost 2 minutes, so that a server that rounds ttls down to
 * seconds takes most of a second away.
 */
export const probeTtl = 119_990;

/** How long each of the two requests that delete the keys may take after Ctrl-C, in ms. */
const maxCleanup = 3_000;

/** What was seen of one thing that the library needs. */
export interface Seen {
  /** Whether the server has it; undefined: what it answered does not say. */
  readonly works?: boolean | undefined;
  /** What was found, for people. Never a reply: it may have a secret in it. */
  readonly found?: string | undefined;
  /** Why a request failed. */
  readonly failure?: Failure;
}

/** All that was seen. A need that is absent was not asked. */
export type SeenByNeed = Readonly<Partial<Record<Need, Seen>>>;

/** A reply, or something stored, that is none of those that are possible. The message says what is wrong, without the reply. */
export class UnexpectedReply extends Error {}

/** From when to when a request was under way, in ms by this machine's clock. */
export interface Span {
  readonly from: number;
  readonly to: number;
}

/** What must be stored at a key, until its ttl ends. */
export interface Written {
  readonly key: string;
  /** null: nothing. undefined: a collection, whose ttl alone is compared. */
  readonly value?: string | null;
  /** ms, from a moment of this time on. */
  readonly ttl?: number;
  readonly at?: Span;
}

/** The reply of one of several commands. Throws why there is none. */
export function replyOf(outcome: PromiseSettledResult<unknown>): unknown {
  if (outcome.status === "rejected") throw outcome.reason;
  return outcome.value;
}

/** Something that takes time. */
type Limited<Result> = (signal: AbortSignal, restart: () => void) => Promise<Result>;

/** The requests to one endpoint. */
export class ConformanceSession {
  readonly endpoint: Endpoint;
  readonly runtime: Runtime;
  /** What must still be stored when all else has been asked. */
  readonly kept: Written[] = [];
  /** How many writes were not stored. */
  lost = 0;
  /** What was seen so far. */
  readonly seen: Partial<Record<Need, Seen>> = {};
  readonly #open: () => Endpoint;
  readonly #settings: ConformanceSettings;
  readonly #keys = new Set<string>();
  #requests = 0;

  /** @param open opens an endpoint that shares no request with others */
  constructor(open: () => Endpoint, settings: ConformanceSettings) {
    this.#open = open;
    this.#settings = settings;
    this.runtime = settings.runtime;
    this.endpoint = this.connection();
  }

  /** How many requests it has sent. */
  get requests(): number {
    return Math.round(this.#requests);
  }

  get timeout(): number {
    return this.#settings.timeout;
  }

  /** The endpoint once more: what is sent through it at the same time goes over another connection. */
  connection(): Endpoint {
    const endpoint = this.#open();
    return {
      ...endpoint,
      send: (command) => {
        this.#count();
        return this.within((signal) => endpoint.send(command, signal));
      },
    };
  }

  /** A key of this check, which {@link clean} deletes. All of them are in one slot of a cluster. */
  key(name: string): string {
    const { prefix, id } = this.#settings;
    const key = `${prefix}:doctor:{${id}}:${name}`;
    this.#keys.add(key);
    return key;
  }

  /** Sends one command. */
  ask(command: Command, endpoint: Endpoint = this.endpoint): Promise<unknown> {
    return endpoint.send(command, this.#settings.stop);
  }

  /** Sends one command, and says when. */
  async askTimed(command: Command): Promise<Span & { readonly reply: unknown }> {
    const from = this.runtime.monotonic();
    const reply = await this.ask(command);
    return { reply, from, to: this.runtime.monotonic() };
  }

  /**
   * Sends several commands in one turn, so that the endpoint sends them together if it can.
   *
   * @returns the outcome of each, and whether one was sent alone, because the server refuses to take several
   */
  async askTogether(
    commands: readonly Command[],
  ): Promise<{ outcomes: PromiseSettledResult<unknown>[]; wasAlone: boolean }> {
    const { send } = this.#open();
    let wasAlone = false;
    const onSent = (part: number) => {
      this.#count(part);
      wasAlone ||= part === 1;
    };
    const outcomes = await this.within((signal) =>
      Promise.allSettled(commands.map((command) => reporting.get(send)!(command, signal, onSent))),
    );
    return { outcomes, wasAlone };
  }

  /** Subscribes to a channel of this check. */
  async subscribe(channel: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    this.#count();
    return this.#open().subscribe!(channel, signal);
  }

  /** Waits, until the command is to end. */
  pause(ms: number): Promise<void> {
    return sleep(this.runtime, ms, this.#settings.stop);
  }

  /** Does something whose signal aborts after the timeout, with the command, and when it is done. `restart` begins the timeout anew. */
  within<Result>(work: Limited<Result>): Promise<Result> {
    return this.#limited(this.timeout, work, this.#settings.stop);
  }

  async #limited<Result>(ms: number, work: Limited<Result>, stop?: AbortSignal): Promise<Result> {
    // Not AbortSignal.any: Node 20 may collect a timeout that nothing else refers to, and then never aborts.
    const controller = new AbortController();
    const end = () => controller.abort();
    let cancel = this.runtime.timer(ms, end);
    const restart = () => {
      cancel();
      cancel = this.runtime.timer(ms, end);
    };
    stop?.addEventListener("abort", end);
    if (stop?.aborted) end();
    try {
      return await work(controller.signal, restart);
    } finally {
      cancel();
      stop?.removeEventListener("abort", end);
      end();
    }
  }

  /**
   * What a part of the check has seen.
   *
   * @throws StoppedError when the command is to end
   */
  async observe(look: () => Promise<Seen>): Promise<Seen> {
    const stopIfAsked = () => {
      if (this.#settings.stop.aborted) throw new StoppedError();
    };
    stopIfAsked();
    const seen = await look().catch((error) =>
      error instanceof UnexpectedReply
        ? { works: false, found: error.message }
        : { failure: asFailure(error) },
    );
    stopIfAsked();
    return seen;
  }

  /**
   * Deletes what was written, also after Ctrl-C. Resolves with whether nothing of it is there any more; else the keys expire.
   * Never rejects.
   */
  async clean(): Promise<boolean> {
    if (this.#keys.size === 0) return true;
    const send = (name: string) => {
      this.#count();
      const ms = this.#settings.stop.aborted ? Math.min(this.timeout, maxCleanup) : this.timeout;
      return this.#limited(ms, (signal) => this.#open().send([name, ...this.#keys], signal));
    };
    return send("DEL")
      .then(() => send("EXISTS"))
      .then(
        (left) => left === 0,
        () => false,
      );
  }

  /** @param part of a request that several commands share */
  #count(part = 1): void {
    const before = this.requests;
    this.#requests += part;
    if (this.requests > before) this.#settings.onRequest?.();
  }
}
