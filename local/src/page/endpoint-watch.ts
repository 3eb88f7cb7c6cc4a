import type { StoredKey } from "../../../src/stored/parse.ts";
import type { FaultRule } from "../faults/faults.ts";
import type { LocalEndpoint } from "../rest/endpoint.ts";
import { isShown } from "./key.ts";
import { readKeys, scanStep } from "./read.ts";
import type { EndpointState } from "./state.ts";
import { type SeenValue, Stored } from "./stored.ts";

/** What a watch tells. */
export interface Changes {
  stored(parts: StoredKey, at: number): void;
  fault(name: string, phase: "fault" | "healed", at: number): void;
}

/** Reads under way at once: a Redis that does not answer must not gather them. */
const mostReads = 20;
/** Keys that are read once more at each look. */
const recheck = 25;
/** ms after which a Redis that does not answer is called silent. */
const silence = 1_000;
const longestName = 80;

/** Watches one endpoint. */
export class EndpointWatch {
  readonly #endpoint: LocalEndpoint;
  readonly #changes: Changes;
  readonly #stored = new Stored();
  readonly #waiting = new Map<string, StoredKey>();
  readonly #samples: { readonly at: number; readonly requests: number; readonly billed: number }[] = [];
  #faults = new Map<string, string>();
  #reads = 0;
  #cursor = "0";
  #next = 0;
  #walking = false;
  /** Since when an answer of Redis is waited for. */
  #silentSince: number | undefined;

  /** Whether its data are those of this process. */
  readonly #canForget: boolean;

  constructor(endpoint: LocalEndpoint, changes: Changes) {
    this.#endpoint = endpoint;
    this.#changes = changes;
    this.#canForget = endpoint.redisUrl === undefined || endpoint.pid !== undefined;
  }

  get name(): string {
    return this.#endpoint.name;
  }

  /** What it has under a key; undefined: it is not up. */
  holds(key: string): SeenValue | "free" | undefined {
    if (!this.#endpoint.running) return undefined;
    const found = this.#stored.get(key);
    return found && found.until > Date.now() ? found : "free";
  }

  /** The keys that it has. */
  shown(now: number): StoredKey[] {
    return this.#stored.values(now).map(({ parts }) => parts);
  }

  /** A command has run that may have changed these keys: reads them at once. */
  changed(keys: readonly StoredKey[], at: number): void {
    if (keys.length === 0) return;
    if (this.#reads < mostReads) void this.#read(keys, at);
    else for (const parts of keys) if (this.#waiting.size < 500) this.#waiting.set(parts.key, parts);
  }

  /** All data are gone. */
  forget(at: number): void {
    for (const parts of this.shown(at)) this.#take(parts, undefined, at);
  }

  /** Looks at faults and counts; and, if somebody watches, at keys. */
  look(now: number, watched: boolean): void {
    const { log } = this.#endpoint;
    this.#samples.push({ at: now, requests: log.requests, billed: log.billed });
    while (this.#samples.length > 1 && now - this.#samples[0]!.at > 2_000) this.#samples.shift();
    this.#compareFaults(now);
    if (!this.#endpoint.running) return;
    const due = [...this.#waiting.values()].slice(0, 2 * recheck);
    for (const { key } of due) this.#waiting.delete(key);
    this.changed(due, now);
    if (watched && !this.#walking) void this.#walk();
  }

  /** One step of the walk over all keys, and a part of those that are known: others may have changed them. */
  async #walk(): Promise<void> {
    this.#walking = true;
    this.#silentSince = Date.now();
    try {
      const { cursor, keys } = await scanStep(this.#endpoint, this.#cursor);
      this.#cursor = cursor;
      const known = this.shown(Date.now());
      if (this.#next >= known.length) this.#next = 0;
      const again = known.slice(this.#next, this.#next + recheck);
      this.#next += recheck;
      const fresh = keys.filter((parts) => isShown(parts) && !this.#stored.get(parts.key));
      if (again.length + fresh.length > 0) await this.#read([...again, ...fresh], Date.now());
      this.#silentSince = undefined;
    } catch {
      // Redis cannot be reached: `state` says so for as long as it lasts.
      this.#silentSince = 0;
    } finally {
      this.#walking = false;
    }
  }

  async #read(keys: readonly StoredKey[], at: number): Promise<void> {
    this.#reads += 1;
    const began = Date.now();
    try {
      const values = await readKeys(this.#endpoint, keys);
      // When Redis looked at its clock is known as exactly as the reading was long.
      const slack = 20 + Date.now() - began;
      for (const [index, parts] of keys.entries()) this.#take(parts, values[index], at, slack);
    } catch {
      // The endpoint was stopped meanwhile, or its Redis: the walk reads the keys when it is back.
    } finally {
      this.#reads -= 1;
    }
  }

  #take(parts: StoredKey, value: SeenValue | undefined, at: number, slack?: number): void {
    if (this.#stored.set(parts.key, value, at, slack)) this.#changes.stored(parts, at);
  }

  #compareFaults(now: number): void {
    const found = new Map(this.#endpoint.faults.list().map((rule) => [idOf(rule), faultName(rule)]));
    if (!this.#endpoint.running) found.set("stopped", "stopped");
    for (const [id, name] of this.#faults) if (!found.has(id)) this.#changes.fault(name, "healed", now);
    for (const [id, name] of found) if (!this.#faults.has(id)) this.#changes.fault(name, "fault", now);
    this.#faults = found;
  }

  state(now: number): EndpointState {
    const { name, url, running, log, faults } = this.#endpoint;
    const [first] = this.#samples;
    const seconds = first ? Math.max(1, (now - first.at) / 1_000) : 1;
    // After a reset of the log the counts begin again.
    const rate = (count: number, before = 0) =>
      Math.max(0, (count < before ? count : count - before) / seconds);
    const silent = this.#silentSince !== undefined && now - this.#silentSince > silence;
    return {
      name,
      url,
      status: running ? (silent ? "silent" : "up") : "stopped",
      requests: log.requests,
      billed: log.billed,
      requestsPerSecond: rate(log.requests, first?.requests),
      billedPerSecond: rate(log.billed, first?.billed),
      faults: faults.list(),
      canForget: this.#canForget,
    };
  }
}

/** The rule without the number of requests that remain. */
const idOf = ({ times, ...rule }: FaultRule): string => JSON.stringify([rule, times !== undefined]);

/** A rule in words: `delay 300 ms`, `drop-reply SET`. */
export function faultName({ fault, command, ms, status, probability = 1, times }: FaultRule): string {
  return [
    fault,
    command,
    ms === undefined ? undefined : `${typeof ms === "number" ? ms : ms.join("–")} ms`,
    fault === "status" ? `${status ?? 500}` : undefined,
    probability < 1 ? `${Math.round(probability * 100)} %` : undefined,
    times === undefined ? undefined : "some times",
  ]
    .filter((part) => part !== undefined)
    .join(" ")
    .slice(0, longestName);
}
