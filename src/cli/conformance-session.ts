import { reporting } from "../endpoints/batch.ts";
import type { Command, Endpoint } from "../index.ts";
import { StoppedError } from "./command.ts";
import { asFailure, type Failure } from "./doctor-probe.ts";

// The requests of one conformance check: counted, within the timeout, ended by Ctrl-C; and what they leave behind.

/** How to check. */
export interface ConformanceSettings {
  readonly prefix: string;
  /** ms per request */
  readonly timeout: number;
  /** Names the keys of this check. Unguessable. */
  readonly id: string;
  /** Aborts when the command is to end. */
  readonly stop: AbortSignal;
}

/** How long the keys live that could not be deleted, in ms. */
export const probeTtl = 120_000;

/** How long to wait for the deletion of the keys, in ms. */
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

/** A reply that is none of those that are possible. The message says what is wrong, without the reply. */
export class UnexpectedReply extends Error {}

/** The requests to one endpoint. */
export class ConformanceSession {
  readonly endpoint: Endpoint;
  readonly #open: () => Endpoint;
  readonly #settings: ConformanceSettings;
  readonly #written = new Set<string>();
  #requests = 0;

  /** @param open opens an endpoint that shares no request with others */
  constructor(open: () => Endpoint, settings: ConformanceSettings) {
    this.#open = open;
    this.#settings = settings;
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
        this.#requests += 1;
        return this.within((signal) => endpoint.send(command, signal));
      },
    };
  }

  /** A key of this check, which {@link clean} deletes. All of them are in one slot of a cluster. */
  key(name: string): string {
    const { prefix, id } = this.#settings;
    const key = `${prefix}:doctor:{${id}}:${name}`;
    this.#written.add(key);
    return key;
  }

  /** Sends one command. */
  ask(command: Command, endpoint: Endpoint = this.endpoint): Promise<unknown> {
    return endpoint.send(command, this.#settings.stop);
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
      this.#requests += part;
      wasAlone ||= part === 1;
    };
    const outcomes = await this.within((signal) =>
      Promise.allSettled(commands.map((command) => reporting.get(send)!(command, signal, onSent))),
    );
    return { outcomes, wasAlone };
  }

  /** Subscribes to a channel of this check. */
  async subscribe(channel: string, signal: AbortSignal): Promise<ReadableStream<Uint8Array>> {
    this.#requests += 1;
    return this.#open().subscribe!(channel, signal);
  }

  /** Does something whose signal aborts after the timeout, with the command, and when it is done. */
  async within<Result>(work: (signal: AbortSignal) => Promise<Result>): Promise<Result> {
    const { stop } = this.#settings;
    // Not AbortSignal.any: Node 20 may collect a timeout that nothing else refers to, and then never aborts.
    const controller = new AbortController();
    const end = () => controller.abort();
    const timer = setTimeout(end, this.timeout);
    stop.addEventListener("abort", end);
    if (stop.aborted) end();
    try {
      return await work(controller.signal);
    } finally {
      clearTimeout(timer);
      stop.removeEventListener("abort", end);
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

  /** Deletes what was written, also after Ctrl-C. Resolves with whether it has; else the keys expire. Never rejects. */
  async clean(): Promise<boolean> {
    if (this.#written.size === 0) return true;
    this.#requests += 1;
    const signal = AbortSignal.timeout(Math.min(this.timeout, maxCleanup));
    return this.#open()
      .send(["DEL", ...this.#written], signal)
      .then(
        () => true,
        () => false,
      );
  }
}
