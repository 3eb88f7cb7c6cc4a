import type { Timeline, TimelineEvent, Outcome as Vote } from "../../playground/picture/timeline.ts";
import { isRedlockError } from "../../src/errors.ts";
import { keyOf } from "../../src/redis/keys.ts";
import { CallRecords, resourceOf } from "./call-records.ts";
import type { Outcome } from "./calls.ts";
import type { Hold } from "./holds.ts";
import type { Process } from "./process.ts";
import type { Request } from "./request.ts";
import type { Scheduler } from "./scheduler.ts";
import type { Server } from "./server.ts";

// Records a play as the picture draws it. It only looks: it draws nothing, and sends nothing.

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

/** A value at a key of a server. */
interface StoredValue {
  readonly text: string;
  /** When it expires, in virtual ms. */
  readonly until: number;
  /** The fence that was drawn there with it. */
  readonly fence: number | undefined;
  readonly holder: string;
}

/** What is written down of one play. Its times are virtual ms. */
export class Recorder {
  readonly #scheduler: Scheduler;
  readonly #events: TimelineEvent[] = [];
  readonly #requests = new Map<string, SentRecord>();
  readonly #calls = new CallRecords();
  /** By endpoint and key: what was last seen there. */
  readonly #stored = new Map<string, StoredValue>();
  /** By hold: when it was last known to end. */
  readonly #valid = new Map<Hold, number>();

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
    const all = keys.map((key) => resourceOf(key));
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

  /** Writes down what an execution has changed at the keys of locks. */
  changed(process: Process, server: Server, request: Request): void {
    const { now } = this.#scheduler;
    for (const key of request.keys) {
      const id = `${server.name}\n${key}`;
      const place = { endpoint: server.name, key: resourceOf(key) };
      const before = this.#stored.get(id);
      const text = server.execute(["GET", key]) as string | null;
      if (before && before.text !== text && before.until > now)
        this.#add({ phase: "removed", ...place, holder: before.holder });
      this.#stored.delete(id);
      if (text === null) continue;
      const until = now + Number(server.execute(["PTTL", key])) / server.rate;
      const fence = Number(server.execute(["GET", keyOf("redlock", "fence", resourceOf(key))])) || undefined;
      const known = before?.text === text ? before : undefined;
      const holder = known?.holder ?? process.name;
      this.#stored.set(id, { text, until, fence, holder });
      const isNew = !known || known.fence !== fence || Math.abs(known.until - until) > 1.5;
      if (isNew) this.#add({ phase: "stored", ...place, holder, until, fence });
    }
  }

  /** What a place that is no Redis server now has. */
  holds(endpoint: string, key: string, { holder, fence }: { holder: string; fence: number }): void {
    this.#add({ phase: "removed", endpoint, key });
    this.#add({ phase: "stored", endpoint, key, holder, fence });
  }

  /** A hold may be relied on for so many ms more; `drift`: what was taken off, in ms. */
  valid(hold: Hold, remaining: number, drift: number | undefined): void {
    const { process, resources, fence } = hold;
    const safe = this.#scheduler.now + remaining / process.rate;
    if (Math.abs((this.#valid.get(hold) ?? 0) - safe) < 1.5) return;
    this.#valid.set(hold, safe);
    const taken = drift === undefined ? { until: safe } : { safe, until: safe + drift / process.rate };
    for (const key of resources)
      this.#add({ phase: "valid", client: process.name, key: resourceOf(key), fence, ...taken });
  }

  /** A holder has given a hold up. What nobody gives up ends by itself. */
  ended(hold: Hold): void {
    if (!this.#valid.delete(hold)) return;
    for (const key of hold.resources)
      this.#add({ phase: "ended", client: hold.process.name, key: resourceOf(key) });
  }

  fault(fault: FaultRecord): void {
    this.#add({ phase: "fault", ...fault });
  }

  healed({ name, client, endpoint }: FaultRecord): void {
    this.#add({ phase: "healed", name, client, endpoint });
  }

  /** What was recorded, in the order of time. */
  timeline(title: string, lanes: Pick<Timeline, "clients" | "endpoints">): Timeline {
    const events = this.#events.map((event) => this.#withKey(event));
    const to = this.#scheduler.now;
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
