import type { Timeline, TimelineEvent, Outcome as Vote } from "../../playground/picture/timeline.ts";
import { isRedlockError } from "../../src/errors.ts";
import { CallRecords } from "./call-records.ts";
import type { Outcome } from "./calls.ts";
import type { Hold } from "./holds.ts";
import { Names } from "./names.ts";
import type { Process } from "./process.ts";
import type { Request } from "./request.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Server } from "./server.ts";
import { type StoredValue, storedValues } from "./stored-values.ts";

// Records a simulation as the picture draws it. It only looks: it draws nothing, and sends nothing.

/** A fault and what it concerns; without a client and an endpoint, everything. */
export interface FaultRecord {
  readonly name: string;
  readonly client?: string | undefined;
  readonly endpoint?: string | undefined;
  readonly detail?: string | undefined;
}

/** A request that is sent to somebody. */
interface SentRecord {
  readonly client: string;
  readonly endpoint: string;
  readonly operation: string;
  readonly key: string;
  readonly call?: string | undefined;
  readonly detail?: string | undefined;
}

/** What is written down of one simulation. Its times are virtual ms. */
export class Recorder {
  readonly #scheduler: Scheduler;
  readonly #events: TimelineEvent[] = [];
  readonly #requests = new Map<string, SentRecord>();
  readonly #names = new Names();
  readonly #calls = new CallRecords(this.#names);
  /** By endpoint and key: what was last seen there, by its text. */
  readonly #stored = new Map<string, ReadonlyMap<string, StoredValue & { readonly holder: string }>>();
  /** By hold: when it was last known to end. */
  readonly #valid = new Map<Hold, number>();
  readonly #faults = new Set<string>();
  /** Until when the work went on: from then on a simulation only waits and probes. */
  #workEnded: number | undefined;

  constructor(scheduler: Scheduler) {
    this.#scheduler = scheduler;
  }

  /** @returns the call's number */
  called(process: Process, what: string): string {
    const { call, operation, key } = this.#calls.began(process.name, what);
    this.#add({ phase: "called", client: process.name, call, operation, key, detail: what });
    return call;
  }

  returned(process: Process, call: string, outcome: Outcome<unknown>): void {
    const { operation, key, votes } = this.#calls.ended(call);
    const value = "value" in outcome ? outcome.value : undefined;
    const { fence, validity } = grantOf(value);
    const detail = "error" in outcome ? String(outcome.error) : undefined;
    const vote = "error" in outcome ? voteOf(outcome.error) : voteOfValue(operation, value);
    this.#add({
      phase: "returned",
      client: process.name,
      call,
      operation,
      key,
      outcome: vote,
      votes,
      fence,
      validity,
      detail,
    });
  }

  /** A client sends a request to an endpoint. @returns the request's number */
  sent(process: Process, server: Server, request: Request): string {
    const { keys, raises, value } = request;
    const operation = raises ? "raise fence" : request.operation;
    const call = this.#calls.sent(process.name, request);
    const all = keys.map((key) => this.#names.of(key));
    const detail = `${all.join(", ")} with value ${value.slice(0, 8)}…`;
    return this.request({
      client: process.name,
      endpoint: server.name,
      operation,
      key: all[0] ?? "",
      call,
      detail,
    });
  }

  /** A request to anybody. @returns its number */
  request(sent: SentRecord): string {
    const request = `q${this.#requests.size + 1}`;
    this.#requests.set(request, sent);
    this.#add({ phase: "sent", request, ...sent });
    return request;
  }

  executed(request: string, outcome: Vote): void {
    const { client, endpoint } = this.#requests.get(request)!;
    this.#add({ phase: "executed", request, client, endpoint, outcome });
  }

  answered(request: string, outcome: Vote): void {
    const { client, endpoint, call, operation } = this.#requests.get(request)!;
    if (call !== undefined) this.#calls.answered(call, { endpoint, operation, outcome });
    this.#add({ phase: "answered", request, client, endpoint, outcome });
  }

  lost(request: string, what: "request" | "reply"): void {
    const { client, endpoint } = this.#requests.get(request)!;
    this.#add({ phase: "lost", request, client, endpoint, what });
  }

  /** Writes down what an execution has changed at its keys. */
  changed(process: Process, server: Server, request: Request): void {
    if (request.operation === "announce") return;
    for (const key of [...request.keys, ...(request.locks?.keys ?? [])]) {
      const found = storedValues(server, key, this.#scheduler.now);
      this.#compare({ endpoint: server.name, key }, found, process.name);
    }
  }

  /** A server has lost its memory. */
  forgotten(server: Server): void {
    for (const place of this.#stored.keys()) {
      const [endpoint, key] = place.split("\n") as [string, string];
      if (endpoint === server.name) this.#compare({ endpoint, key }, new Map(), "");
    }
  }

  /** What a place that is no Redis server now has. */
  holds(endpoint: string, key: string, { holder, fence }: { holder: string; fence: number }): void {
    this.#add({ phase: "removed", endpoint, key });
    this.#add({ phase: "stored", endpoint, key, holder, fence });
  }

  #compare(
    { endpoint, key }: { readonly endpoint: string; readonly key: string },
    found: ReadonlyMap<string, StoredValue>,
    writer: string,
  ): void {
    const { now } = this.#scheduler;
    const place = { endpoint, key: this.#names.of(key) };
    const id = `${endpoint}\n${key}`;
    const before = this.#stored.get(id) ?? new Map();
    for (const [text, { holder, until = Number.POSITIVE_INFINITY }] of before) {
      if (!found.has(text) && until > now) this.#add({ phase: "removed", ...place, holder });
    }
    const after = new Map<string, StoredValue & { readonly holder: string }>();
    for (const [text, value] of found) {
      const known = before.get(text);
      const holder = known?.holder ?? writer;
      after.set(text, { ...value, holder });
      const differs = (one: number | undefined, other: number | undefined) =>
        Math.abs((one ?? 0) - (other ?? 0)) > 1.5;
      const isNew = !known || known.fence !== value.fence || differs(known.until, value.until);
      if (isNew) this.#add({ phase: "stored", ...place, holder, until: value.until, fence: value.fence });
    }
    this.#stored.set(id, after);
  }

  /** A hold may be relied on for so many ms more; `drift`: what was taken off, in ms. */
  valid(hold: Hold, remaining: number, drift: number | undefined): void {
    const { process, resources, fence } = hold;
    const safe = this.#scheduler.now + remaining / process.rate;
    if (Math.abs((this.#valid.get(hold) ?? 0) - safe) < 1.5) return;
    this.#valid.set(hold, safe);
    const taken = drift === undefined ? { until: safe } : { safe, until: safe + drift / process.rate };
    for (const key of resources)
      this.#add({ phase: "valid", client: process.name, key: this.#names.of(key), fence, ...taken });
  }

  /** A holder has given a hold up. What nobody gives up ends by itself. */
  ended(hold: Hold): void {
    if (!this.#valid.delete(hold)) return;
    for (const key of hold.resources)
      this.#add({ phase: "ended", client: hold.process.name, key: this.#names.of(key) });
  }

  fault(fault: FaultRecord): void {
    const id = idOf(fault);
    if (this.#faults.has(id)) return;
    this.#faults.add(id);
    this.#add({ phase: "fault", ...fault });
  }

  healed({ name, client, endpoint }: FaultRecord): void {
    if (!this.#faults.delete(idOf({ name, client, endpoint }))) return;
    this.#add({ phase: "healed", name, client, endpoint });
  }

  /** What happens at one moment: it is healed at once. */
  moment(fault: FaultRecord): void {
    this.fault(fault);
    this.healed(fault);
  }

  violated(invariant: string, detail: string, without: readonly string[]): void {
    const name = without.length === 0 ? invariant : `${invariant} (without ${without.join(", ")})`;
    // The detail names whom it is about: a process, else a server.
    const client = /\bp\d+\b/.exec(detail)?.[0];
    const endpoint = client === undefined ? /\br\d+\b/.exec(detail)?.[0] : undefined;
    this.#add({ phase: "violated", client, endpoint, name, detail });
  }

  /** The work is over. */
  workEnds(): void {
    this.#workEnded ??= this.#scheduler.now;
  }

  /** What was recorded, in the order of time. */
  timeline(title: string, lanes: Pick<Timeline, "clients" | "endpoints">): Timeline {
    const events = this.#events.map((event) => this.#withKey(event));
    const broken = events.flatMap(({ phase, time }) => (phase === "violated" ? [time] : []));
    const to = Math.max(...broken, this.#workEnded ?? this.#scheduler.now);
    const others = new Set([...this.#requests.values()].map(({ endpoint }) => endpoint));
    const endpoints = [...new Set([...lanes.endpoints, ...others])];
    return { version: 1, title, clients: lanes.clients, endpoints, from: 0, to, events };
  }

  /** A call's key may become known by its first request only. */
  #withKey(event: TimelineEvent): TimelineEvent {
    if (event.key !== undefined || (event.phase !== "called" && event.phase !== "returned")) return event;
    const key = this.#calls.keyOf(event.call);
    return key === undefined ? event : { ...event, key };
  }

  #add(event: Unfinished): void {
    const known = Object.entries(event).filter(([, value]) => value !== undefined);
    // Only members without a value are left out.
    const members = Object.fromEntries(known) as unknown as Omit<TimelineEvent, "time">;
    this.#events.push({ time: this.#scheduler.now, ...members });
  }
}

/** An event without its time, some of whose members may have no value. */
type Unfinished = Pick<TimelineEvent, "phase"> & {
  readonly [Member in Exclude<keyof TimelineEvent, "phase" | "time">]?: TimelineEvent[Member] | undefined;
};

const idOf = ({ name, client, endpoint }: FaultRecord): string => `${name}\n${client}\n${endpoint}`;

/** How a call failed. */
function voteOf(error: unknown): Vote {
  const code = isRedlockError(error) ? error.code : undefined;
  if (code === "LOCK_HELD") return "held";
  return code === "LOCK_LOST" ? "gone" : "error";
}

/** What the value of a call that did not fail says. */
function voteOfValue(operation: string, value: unknown): Vote {
  if (value === null) return "held";
  if (value !== false) return "granted";
  if (operation === "write") return "held";
  return /^(release|verify|extend)/.test(operation) ? "gone" : "granted";
}

function grantOf(value: unknown): {
  readonly fence: number | undefined;
  readonly validity: number | undefined;
} {
  if (typeof value !== "object" || value === null || !("remaining" in value)) {
    return { fence: undefined, validity: undefined };
  }
  const { fence, remaining } = value as { fence?: number; remaining: unknown };
  return { fence, validity: typeof remaining === "function" ? Number(remaining.call(value)) : undefined };
}
