import type { Attributes, Counter, Histogram, Meter } from "@opentelemetry/api";
import { endOf, type ObservedEvent, type OperationEnd } from "./end.ts";

/** Bounds in seconds: of a wait for a lock, from one round trip near by to `wait`. */
const waitBounds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
/** Bounds in seconds: of a hold or a run, up to `maxHold`. */
const holdBounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** Name, bounds and description of the durations, by operation. */
const durations = {
  acquire: ["redlock.acquire.duration", waitBounds, "From the call of acquire to its end"],
  hold: ["redlock.hold.duration", holdBounds, "From the acquire of a lock to the end of its hold"],
  run: ["idempotency.run.duration", holdBounds, "From the call of run to its end"],
} as const;

/** Unit and description of the counters. */
const counters = {
  "redlock.operations": ["{operation}", "Operations that have ended"],
  "redlock.requests": ["{request}", "HTTP requests sent"],
  "redlock.commands": ["{command}", "Redis commands executed, as Upstash bills them"],
  "redlock.endpoint.errors": ["{error}", "Answers that did not count"],
  "idempotency.http.answers": ["{answer}", "Requests refused, or handled unguarded"],
} as const;

/** The instruments, and what each event adds to them. */
export class Metrics {
  readonly #attributes: Attributes;
  readonly #durations = new Map<OperationEnd["operation"], Histogram>();
  readonly #counters = new Map<keyof typeof counters, Counter>();

  /** @param attributes of everything that is measured */
  constructor(meter: Meter, attributes: Attributes) {
    this.#attributes = attributes;
    for (const [operation, [name, bounds, description]] of Object.entries(durations)) {
      const options = { unit: "s", description, advice: { explicitBucketBoundaries: [...bounds] } };
      this.#durations.set(operation as OperationEnd["operation"], meter.createHistogram(name, options));
    }
    for (const [name, [unit, description]] of Object.entries(counters)) {
      this.#counters.set(name as keyof typeof counters, meter.createCounter(name, { unit, description }));
    }
  }

  /** Adds what an event tells. */
  record(event: ObservedEvent): void {
    const operation = costOperation(event);
    if (operation && "requests" in event) {
      this.#add("redlock.requests", { "redlock.operation": operation }, event.requests);
      this.#add("redlock.commands", { "redlock.operation": operation }, event.commands);
    }
    if (event.type === "endpointError") {
      const { endpoint, error } = event;
      this.#add("redlock.endpoint.errors", { "redlock.endpoint": endpoint, "error.type": error.kind });
    }
    if (event.type === "refused" || event.type === "unguarded") {
      const code = event.type === "refused" ? { "error.type": event.code } : {};
      this.#add("idempotency.http.answers", { "redlock.outcome": event.type, ...code });
    }
    this.#recordEnd(event);
  }

  #recordEnd(event: ObservedEvent): void {
    const end = endOf(event);
    // An event without an id is of no operation: its hold had ended before.
    if (!end || ("id" in event && event.id === undefined)) return;
    const { operation, outcome, error, ms } = end;
    const attributes = { "redlock.outcome": outcome, ...(error && { "error.type": error }) };
    this.#durations.get(operation)!.record(ms / 1_000, { ...this.#attributes, ...attributes });
    this.#add("redlock.operations", { "redlock.operation": operation, ...attributes });
  }

  #add(name: keyof typeof counters, attributes: Attributes, value = 1): void {
    this.#counters.get(name)!.add(value, { ...this.#attributes, ...attributes });
  }
}

/** What an event's requests were for; undefined where a later event counts them, too. */
function costOperation(event: ObservedEvent): string | undefined {
  if (!("resources" in event)) return endOf(event)?.operation;
  if (event.type === "extended") return "extend";
  if (event.type === "released") return "release";
  return event.type === "contended" ? undefined : "acquire";
}
