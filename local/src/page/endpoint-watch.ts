import type { StoredKey } from "../../../src/inspect/stored-key.ts";
import type { LocalEndpoint } from "../rest/endpoint.ts";
import { isShown } from "./key.ts";
import { readKeys, scanStep } from "./read.ts";
import type { EndpointState } from "./state.ts";
import type { SeenValue } from "./stored.ts";

/** Keys that are known of an endpoint. */
const mostKeys = 1_000;
/** Keys that are read at once. */
const mostRead = 100;
/** Keys that are read once more at each look: others may have changed them. */
const recheck = 25;
/** ms after which a Redis that does not answer is called silent. */
const silence = 1_000;

/** Watches one endpoint: what it has stored, its counts and its faults. */
export class EndpointWatch {
  readonly endpoint: LocalEndpoint;
  /** What was read, the newest last. */
  readonly #values = new Map<string, SeenValue>();
  readonly #due = new Map<string, StoredKey>();
  #cursor = "0";
  #next = 0;
  /** Since when an answer of Redis is waited for. */
  #waitsSince: number | undefined;
  #isSilent = false;
  /** Whether its data are those of this process. */
  readonly #canForget: boolean;

  constructor(endpoint: LocalEndpoint) {
    this.endpoint = endpoint;
    this.#canForget = endpoint.redisUrl === undefined || endpoint.pid !== undefined;
  }

  /** What it has under a key; undefined: it is not up. */
  holds(key: string): SeenValue | "free" | undefined {
    if (!this.endpoint.running) return undefined;
    const found = this.#values.get(key);
    return found && found.until > Date.now() ? found : "free";
  }

  /** The keys that it has. */
  keys(): StoredKey[] {
    const now = Date.now();
    for (const [key, { until }] of this.#values) if (until <= now) this.#values.delete(key);
    return [...this.#values.values()].map(({ parts }) => parts);
  }

  /** Commands have run that may have changed these keys. */
  changed(keys: readonly StoredKey[]): void {
    for (const parts of keys) if (this.#due.size < mostKeys) this.#due.set(parts.key, parts);
    if (this.#waitsSince === undefined && this.endpoint.running) void this.#read(false);
  }

  /** All data are gone. */
  forget(): void {
    this.changed(this.keys());
  }

  /** Reads a part of its keys. */
  look(now: number): void {
    if (this.#waitsSince !== undefined) {
      this.#isSilent ||= now - this.#waitsSince > silence;
      return;
    }
    const known = this.keys();
    if (this.#next >= known.length) this.#next = 0;
    for (const parts of known.slice(this.#next, this.#next + recheck)) this.#due.set(parts.key, parts);
    this.#next += recheck;
    if (this.endpoint.running) void this.#read(true);
  }

  /** Reads the keys that are due, and with `scan` one step of the walk over all keys. */
  async #read(scan: boolean): Promise<void> {
    this.#waitsSince = Date.now();
    try {
      if (scan) await this.#scan();
      while (this.#due.size > 0) {
        const keys = [...this.#due.values()].slice(0, mostRead);
        for (const { key } of keys) this.#due.delete(key);
        const values = await readKeys(this.endpoint, keys);
        for (const [index, parts] of keys.entries()) this.#take(parts, values[index]);
      }
      this.#isSilent = false;
    } catch {
      // Its Redis cannot be reached. The keys are read once it is back: the walk finds them.
      this.#isSilent = this.endpoint.running;
    } finally {
      this.#waitsSince = undefined;
    }
  }

  async #scan(): Promise<void> {
    const { cursor, keys } = await scanStep(this.endpoint, this.#cursor);
    this.#cursor = cursor;
    for (const parts of keys) {
      if (isShown(parts) && !this.#values.has(parts.key)) this.#due.set(parts.key, parts);
    }
  }

  #take(parts: StoredKey, value: SeenValue | undefined): void {
    // One that is only read again keeps its place.
    if (this.#values.get(parts.key)?.holder !== value?.holder) this.#values.delete(parts.key);
    if (value) this.#values.set(parts.key, value);
    const [oldest] = this.#values.keys();
    if (this.#values.size > mostKeys && oldest !== undefined) this.#values.delete(oldest);
  }

  state(): EndpointState {
    const { name, url, running, log, faults } = this.endpoint;
    return {
      name,
      url,
      status: running ? (this.#isSilent ? "silent" : "up") : "stopped",
      requests: log.requests,
      billed: log.billed,
      faults: faults.list(),
      canForget: this.#canForget,
    };
  }
}
