import type { Command, Endpoint } from "../../index.ts";
import { peekScript } from "../../redis/peek.lua.ts";
import type { Runtime } from "../../runtime/runtime.ts";
import { type Failure, failureOf, type Place } from "../access.ts";

// The requests of one examination to one endpoint, and the keys that they leave behind.

/** How to examine. */
export interface Settings {
  readonly prefix: string;
  /** ms per request */
  readonly timeout: number;
  /** Names the keys of this examination. Unguessable. */
  readonly id: string;
  readonly runtime: Runtime;
}

/**
 * How long the keys live that are not deleted, for example after Ctrl-C, in ms. Almost 2 minutes, so that a server that
 * rounds ttls down to seconds takes most of a second away.
 */
export const probeTtl = 119_990;

/** ms by which a ttl may differ from the one that was asked for: clocks run and round differently. */
const tolerance = 100;

/** The answer to one question. */
export interface Seen {
  /** Whether the server has it. Undefined: its answers do not say. */
  readonly works?: boolean;
  /** The finding, for people. Never a reply: it may have a secret in it. */
  readonly found?: string;
  /** Why a request failed. */
  readonly failure?: Failure;
  /** Of a request, the median of a few in ms. */
  readonly roundTrip?: number;
  /** For how many ms its clock is ahead of this machine's, at least. */
  readonly clock?: number;
}

/** Something to find out about a server. */
export interface Question {
  readonly ask: (session: Session) => Promise<Seen>;
  /** The question that must have worked before. Null: nothing. Default: `token`, that the token may write. */
  readonly after?: string | null;
}

/**
 * A reply, or something stored, that is none of those that are possible. The message describes the problem, without the reply.
 */
export class UnexpectedReply extends Error {}

/** What must be stored at a key: `value` until `ttl` ms after `at`. Null: nothing. */
export interface Written {
  readonly key: string;
  readonly value: string | null;
  readonly ttl: number;
  readonly at: number;
}

/** An endpoint, and what is seen there. `name`: its host, or `endpoint 2` if the URL cannot be used. */
export type Examined = Pick<Session, "place" | "name" | "dialect" | "seen">;

/** Examines endpoints, side by side. */
export async function examine(
  sessions: readonly Session[],
  questions: Readonly<Record<string, Question>>,
): Promise<readonly Examined[]> {
  await Promise.all(sessions.map((session) => session.askAll(questions)));
  // Not before all have been asked: if two endpoints are one database, each must find the other's key.
  await Promise.all(sessions.map((session) => session.clean()));
  return sessions;
}

/** The requests to one endpoint. */
export class Session {
  readonly place: Pick<Place, "number" | "url" | "variable" | "open">;
  readonly settings: Settings;
  /** By question. A question that is absent was not asked. */
  readonly seen: Record<string, Seen> = {};
  readonly name: string;
  readonly dialect: Endpoint["dialect"] | undefined;
  readonly #endpoint: Endpoint | undefined;
  readonly #keys = new Set<string>();

  /** @param place if it cannot be opened, nothing is asked */
  constructor(place: Session["place"], settings: Settings) {
    this.place = place;
    this.settings = settings;
    try {
      this.#endpoint = place.open();
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
   * @param place the endpoint that owns it. `all`: all endpoints of an examination share it
   */
  key(name: string, place: number | "all" = this.place.number): string {
    const key = `${this.settings.prefix}:doctor:{${this.settings.id}}:${place}:${name}`;
    this.#keys.add(key);
    return key;
  }

  /** Sends one command. */
  ask(command: Command): Promise<unknown> {
    return this.limited((signal) => this.endpoint.send(command, signal));
  }

  /** Does something whose signal aborts after `ms`, and when it is done. */
  async limited<Result>(
    work: (signal: AbortSignal) => Promise<Result>,
    ms: number = this.settings.timeout,
  ): Promise<Result> {
    // Not AbortSignal.any: Node 20 may collect a timeout that nothing else refers to, and then never aborts.
    const controller = new AbortController();
    const end = () => controller.abort(new Error("no answer in time"));
    const cancel = this.settings.runtime.timer(ms, end);
    try {
      return await work(controller.signal);
    } finally {
      cancel();
      end();
    }
  }

  /** Writes a value. */
  async write(key: string, value: string): Promise<Written> {
    const at = this.now();
    await this.ask(["SET", key, value, "PX", probeTtl]);
    return { key, value, ttl: probeTtl, at };
  }

  /** @throws UnexpectedReply with what is there instead. A slow answer is no mistake */
  async mustBeStored(written: Written, when: string): Promise<void> {
    const mistake = this.#mistakeIn(written, await this.#look(written.key));
    if (mistake) throw new UnexpectedReply(`${when}: ${mistake}`);
  }

  /** The problem with the stored value. Undefined: nothing. */
  #mistakeIn(written: Written, [found, left]: readonly [value: unknown, remaining: unknown]) {
    const { value } = written;
    if (value === null) return found === null ? undefined : "it is still there";
    if (found === null) return "nothing is stored";
    return found === value ? this.ttlMistake(written, left) : "another value is stored";
  }

  /** The value of a key, and its remaining time: by a script if scripts work, because only a primary executes them. */
  async #look(key: string): Promise<readonly [value: unknown, remaining: unknown]> {
    const { works = true, failure } = this.seen.eval ?? {};
    if (!works || failure) return [await this.ask(["GET", key]), await this.ask(["PTTL", key])];
    const reply = await this.ask(["EVAL", peekScript.source, 1, key, "peek"]);
    const [text, remaining] = Array.isArray(reply) ? reply : [];
    return [text === "" && remaining === -2 ? null : text, remaining];
  }

  /** The problem with the remaining time. */
  ttlMistake(written: Written, remaining: unknown): string | undefined {
    const passed = this.now() - written.at;
    const ms = Number.isSafeInteger(remaining) ? Number(remaining) : Number.NaN;
    if (ms >= written.ttl - passed - tolerance && ms <= written.ttl + tolerance) return undefined;
    return ms === -1
      ? "it never expires"
      : `${ms} ms are left of ${written.ttl} after ${Math.round(passed)} ms`;
  }

  /** Asks one question after another. */
  async askAll(questions: Readonly<Record<string, Question>>): Promise<void> {
    const { seen } = this;
    for (const [need, { ask, after = "token" }] of Object.entries(questions)) {
      if (seen[need] || (after !== null && !seen[after]?.works)) continue;
      seen[need] = await ask(this).catch(seenOf);
    }
  }

  /** Deletes the written keys. Keys that cannot be deleted expire. Never rejects. */
  async clean(): Promise<void> {
    if (this.#keys.size > 0) await this.ask(["DEL", ...this.#keys]).catch(() => undefined);
  }
}

/** @throws an error that is no failure of an endpoint */
function seenOf(error: unknown): Seen {
  if (error instanceof UnexpectedReply) return { works: false, found: error.message };
  return { failure: failureOf(error) };
}
