import { onAbort } from "../../abort.ts";
import type { Command, Dialect, Endpoint } from "../../index.ts";
import { type Runtime, sleep } from "../../runtime.ts";
import { type Failure, failureOf, isRefusal } from "../access.ts";
import { StoppedError } from "../environment.ts";

// The requests of one examination to one endpoint: within the timeout, ended by Ctrl-C; and what they leave behind.

/** How to examine. */
export interface Settings {
  readonly prefix: string;
  /** ms per request */
  readonly timeout: number;
  /** Names the keys of this examination. Unguessable. */
  readonly id: string;
  /** Aborts when the command is to end. */
  readonly stop: AbortSignal;
  readonly runtime: Runtime;
}

/**
 * How long the keys live that could not be deleted, in ms. Almost 2 minutes, so that a server that rounds ttls down to
 * seconds takes most of a second away.
 */
export const probeTtl = 119_990;

/** How long the request that deletes the keys may take after Ctrl-C, in ms. */
const maxCleanup = 3_000;

/** What was seen of one thing that was asked for. */
export interface Seen {
  /** Whether the server has it; undefined: what it answered does not say. */
  readonly works?: boolean | undefined;
  /** What was found, for people. Never a reply: it may have a secret in it. */
  readonly found?: string | undefined;
  /** Why a request failed. */
  readonly failure?: Failure;
  /** Of a request, the median of a few in ms. */
  readonly roundTrip?: number | undefined;
  /** For how many ms its clock is ahead of this machine's, at least. */
  readonly clock?: number | undefined;
}

/** All that was seen, by what was asked for. What is absent was not asked. */
export type SeenByNeed = Readonly<Record<string, Seen>>;

/** Something to find out about a server. */
export interface Question {
  readonly ask: (session: Session) => Promise<Seen>;
  /** What must have worked before; null: nothing. Default: `token`, that the token may write. */
  readonly after?: string | null;
}

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
  /** null: nothing. */
  readonly value: string | null;
  /** ms, from a moment of this time on. */
  readonly ttl?: number;
  readonly at?: Span;
}

/** An endpoint, as the settings name it. */
export interface Place {
  /** From 1. */
  readonly number: number;
  readonly url: string;
  /** The variable that has its URL. */
  readonly variable?: string | undefined;
}

/** What was found at one endpoint. */
export interface Examined extends Place {
  /** Its host; where the URL cannot be used: `endpoint 2`. */
  readonly endpoint: string;
  readonly dialect?: Dialect | undefined;
  readonly seen: SeenByNeed;
}

/** Examines endpoints, side by side. Rejects once all have tried to delete what they wrote. */
export async function examine(
  sessions: readonly Session[],
  questions: Readonly<Record<string, Question>>,
): Promise<Examined[]> {
  const asked = await Promise.allSettled(sessions.map((session) => session.askAll(questions)));
  // Not before all have been asked: of two that are one database, each must find what the other one wrote.
  await Promise.all(sessions.map((session) => session.clean()));
  for (const each of asked) if (each.status === "rejected") throw each.reason;
  return sessions.map(({ name: endpoint, place, dialect, seen }) => ({ endpoint, ...place, dialect, seen }));
}

/** The requests to one endpoint. */
export class Session {
  readonly name: string;
  readonly place: Place;
  readonly dialect: Dialect | undefined;
  readonly settings: Settings;
  /** What was seen so far. */
  readonly seen: Record<string, Seen> = {};
  /** What must still be stored when all else has been asked. */
  readonly kept: Written[] = [];
  /** Opens the endpoint once more: what is sent through it at the same time shares no request with others. */
  readonly open: () => Endpoint;
  readonly #endpoint: Endpoint | undefined;
  readonly #keys = new Set<string>();

  /** @param open opens an endpoint. It may throw: then nothing is asked */
  constructor(open: () => Endpoint, settings: Settings, place: Place = { number: 1, url: "" }) {
    this.open = open;
    this.settings = settings;
    this.place = place;
    try {
      this.#endpoint = open();
    } catch (error) {
      this.seen.rest = { failure: { kind: "config", message: (error as Error).message } };
    }
    this.name = this.#endpoint?.name ?? `endpoint ${place.number}`;
    this.dialect = this.#endpoint?.dialect;
  }

  get endpoint(): Endpoint {
    return this.#endpoint!;
  }

  /** This machine's clock. */
  now(): number {
    return this.settings.runtime.monotonic();
  }

  /**
   * A key that {@link clean} deletes. All of them are in one slot of a cluster.
   *
   * @param place whose it is; `all`: each endpoint of an examination has the same one
   */
  key(name: string, place: number | "all" = this.place.number): string {
    const { prefix, id } = this.settings;
    const key = `${prefix}:doctor:{${id}}:${place}:${name}`;
    this.#keys.add(key);
    return key;
  }

  /** Sends one command. */
  ask(command: Command, endpoint: Endpoint = this.endpoint): Promise<unknown> {
    return this.limited((signal) => endpoint.send(command, signal));
  }

  /** Waits, until the command is to end. */
  pause(ms: number): Promise<void> {
    return sleep(this.settings.runtime, ms, this.settings.stop);
  }

  /** Does something, and says when. */
  async timed<Result>(work: () => Promise<Result>): Promise<{ readonly result: Result; readonly at: Span }> {
    const from = this.now();
    const result = await work();
    return { result, at: { from, to: this.now() } };
  }

  /**
   * Does something whose signal aborts after `ms`, when it is done, and on `stop`.
   *
   * @throws StoppedError where it is too late to begin
   */
  async limited<Result>(
    work: (signal: AbortSignal) => Promise<Result>,
    ms: number = this.settings.timeout,
    stop: AbortSignal = this.settings.stop,
  ): Promise<Result> {
    if (stop.aborted) throw new StoppedError();
    // Not AbortSignal.any: Node 20 may collect a timeout that nothing else refers to, and then never aborts.
    const controller = new AbortController();
    const end = () => controller.abort(new Error("no answer in time"));
    const cancel = this.settings.runtime.timer(ms, end);
    const ignoreStop = onAbort(stop, end);
    try {
      return await work(controller.signal);
    } finally {
      cancel();
      ignoreStop();
      end();
    }
  }

  /**
   * Asks one question after another.
   *
   * @throws StoppedError when the command is to end
   */
  async askAll(questions: Readonly<Record<string, Question>>): Promise<void> {
    const { seen } = this;
    const { stop } = this.settings;
    for (const [need, { ask, after = "token" }] of Object.entries(questions)) {
      if (seen[need] || (after !== null && !seen[after]?.works)) continue;
      seen[need] = await ask(this).catch(seenOf);
      if (stop.aborted) throw new StoppedError();
    }
  }

  /** Deletes what was written, also after Ctrl-C; what cannot be deleted expires. Never rejects. */
  async clean(): Promise<void> {
    const { token } = this.seen;
    // Who may not write has written nothing.
    if (this.#keys.size === 0 || (token?.failure && isRefusal(token.failure))) return;
    const { stop, timeout } = this.settings;
    const ms = stop.aborted ? Math.min(timeout, maxCleanup) : timeout;
    const command = ["DEL", ...this.#keys];
    const deleting = this.limited(
      (signal) => this.open().send(command, signal),
      ms,
      new AbortController().signal,
    );
    await deleting.catch(() => undefined);
  }
}

/** @throws what is no failure of an endpoint */
function seenOf(error: unknown): Seen {
  if (error instanceof UnexpectedReply) return { works: false, found: error.message };
  return { failure: failureOf(error) };
}
