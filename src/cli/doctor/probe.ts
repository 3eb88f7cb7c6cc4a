import type { Command, Endpoint } from "../../index.ts";
import { peekScript } from "../../redis/peek.lua.ts";
import type { Place } from "../access.ts";
import { UsageError } from "../environment.ts";
import type { Values } from "../options.ts";

// The requests of one examination to one endpoint, and the keys that they leave behind.

/**
 * How long the keys live, in ms. Almost 2 minutes, so that a server that rounds ttls down to seconds takes most of a
 * second away.
 */
export const probeTtl = 119_990;

/** ms by which a ttl may differ from the one that was asked for: clocks run and round differently. */
const tolerance = 100;

/**
 * A server is not as it has to be. The message says how it is instead, and never quotes a reply, because that may have a
 * secret in it.
 */
export class Lack extends Error {
  /** `unknown`: the server does not say, or this user may not ask. */
  readonly answer: "no" | "unknown";

  constructor(message: string, answer: Lack["answer"] = "no") {
    super(message);
    this.answer = answer;
  }
}

/** What must be stored at a key: `value` until `ttl` ms after `at`. Null: nothing. */
export interface Written {
  readonly key: string;
  readonly value: string | null;
  readonly ttl: number;
  readonly at: number;
}

/** How to examine. `id` names the keys of this examination. */
export type Settings = Pick<Values, "prefix" | "timeout"> & { readonly id: string };

/** The requests to one endpoint. */
export class Probe {
  readonly place: Place;
  readonly settings: Settings;
  /** ms of the fastest request of a few. Undefined: none was measured. */
  roundTrip: number | undefined;
  #opened: Endpoint | undefined;

  constructor(place: Place, settings: Settings) {
    this.place = place;
    this.settings = settings;
  }

  /** @throws UsageError if the URL or the token cannot be used */
  get endpoint(): Endpoint {
    try {
      this.#opened ??= this.place.open();
      return this.#opened;
    } catch (error) {
      throw new UsageError((error as Error).message);
    }
  }

  /** `endpoint`: its host, or `endpoint 2` if its URL cannot be used. */
  facts() {
    const { number, variable } = this.place;
    const { name = `endpoint ${number}`, dialect } = this.#opened ?? {};
    return { endpoint: name, number, variable, dialect, roundTrip: this.roundTrip };
  }

  /**
   * A key for this examination. All of them are in one slot of a cluster.
   *
   * @param owner the number of an endpoint. `all`: all endpoints of an examination share it
   */
  key(name: string, owner: number | "all" = this.place.number): string {
    return `${this.settings.prefix}:doctor:{${this.settings.id}}:${owner}:${name}`;
  }

  /** Sends one command. */
  ask(command: Command): Promise<unknown> {
    return this.endpoint.send(command, AbortSignal.timeout(this.settings.timeout));
  }

  /** Writes a value. */
  async write(name: string, value: string): Promise<Written> {
    const [key, at] = [this.key(name), performance.now()];
    await this.ask(["SET", key, value, "PX", probeTtl]);
    return { key, value, ttl: probeTtl, at };
  }

  /**
   * Looks at the stored value. By a script, because only a primary executes it.
   *
   * @throws Lack if something else is there. A slow answer is no mistake
   */
  async mustBeStored(written: Written, when: string): Promise<void> {
    const { key, value } = written;
    const reply = await this.ask(["EVAL", peekScript.source, 1, key, "peek"]);
    const [text, remaining] = Array.isArray(reply) ? reply : [];
    const found = text === "" && remaining === -2 ? null : text;
    if (found !== value) {
      throw new Lack(`${when}: ${found === null ? "nothing" : "something else"} is stored`);
    }
    const mistake = value !== null && this.ttlMistake(written, remaining);
    if (mistake) throw new Lack(`${when}: ${mistake}`);
  }

  /** The problem with the remaining time. */
  ttlMistake({ ttl, at }: Written, remaining: unknown): string | undefined {
    const passed = performance.now() - at;
    const ms = Number.isSafeInteger(remaining) ? Number(remaining) : Number.NaN;
    if (ms >= ttl - passed - tolerance && ms <= ttl + tolerance) return undefined;
    return ms === -1 ? "it never expires" : `${ms} ms are left of ${ttl} after ${Math.round(passed)} ms`;
  }
}
