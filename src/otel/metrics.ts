import type { Attributes, Counter, Histogram, Meter } from "@opentelemetry/api";
import { endOf, type ObservedEvent } from "./end.ts";

/** Bounds in seconds: of a wait for a lock, from one round trip near by to `wait`. */
const waitBounds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
/** Bounds in seconds: of a hold or a run, up to `maxHold`. */
const holdBounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

/** The instruments, and what each event adds to them. */
export class Metrics {
  readonly #attributes: Attributes;
  readonly #durations: Readonly<Record<"acquire" | "hold" | "run", Histogram>>;
  readonly #operations: Counter;
  readonly #requests: Counter;
  readonly #commands: Counter;
  readonly #endpointErrors: Counter;
  readonly #answers: Counter;

  /** @param attributes of everything that is measured */
  constructor(meter: Meter, attributes: Attributes) {
    const counter = (name: string, unit: string, description: string) =>
      meter.createCounter(name, { unit, description });
    const duration = (name: string, bounds: number[], description: string) =>
      meter.createHistogram(name, { unit: "s", description, advice: { explicitBucketBoundaries: bounds } });
    this.#attributes = attributes;
    this.#durations = {
      acquire: duration("redlock.acquire.duration", waitBounds, "From the call of acquire to its end"),
      hold: duration(
        "redlock.hold.duration",
        holdBounds,
        "From the acquire of a lock to the end of its hold",
      ),
      run: duration("idempotency.run.duration", holdBounds, "From the call of run to its end"),
    };
    this.#operations = counter("redlock.operations", "{operation}", "Operations that have ended");
    this.#requests = counter("redlock.requests", "{request}", "HTTP requests sent");
    this.#commands = counter(
      "redlock.commands",
      "{command}",
      "Redis commands executed, as Upstash bills them",
    );
    this.#endpointErrors = counter("redlock.endpoint.errors", "{error}", "Answers that did not count");
    this.#answers = counter("idempotency.http.answers", "{answer}", "Requests refused, or handled unguarded");
  }

  /** Adds what an event tells. */
  record(event: ObservedEvent): void {
    const operation = costOperation(event);
    if (operation && "requests" in event) {
      const attributes = { ...this.#attributes, "redlock.operation": operation };
      this.#requests.add(event.requests, attributes);
      this.#commands.add(event.commands, attributes);
    }
    if (event.type === "endpointError") {
      const { endpoint, error } = event;
      this.#add(this.#endpointErrors, { "redlock.endpoint": endpoint, "error.type": error.kind });
    }
    if (event.type === "refused") {
      this.#add(this.#answers, { "redlock.outcome": "refused", "error.type": event.code });
    }
    if (event.type === "unguarded") this.#add(this.#answers, { "redlock.outcome": "unguarded" });
    this.#recordEnd(event);
  }

  #recordEnd(event: ObservedEvent): void {
    const end = endOf(event);
    // An event without an id is of no operation: its hold had ended before.
    if (!end || ("id" in event && event.id === undefined)) return;
    const { operation, outcome, error, ms } = end;
    const attributes = { "redlock.outcome": outcome, ...(error && { "error.type": error }) };
    this.#durations[operation].record(ms / 1_000, { ...this.#attributes, ...attributes });
    this.#add(this.#operations, { "redlock.operation": operation, ...attributes });
  }

  #add(counter: Counter, attributes: Attributes): void {
    counter.add(1, { ...this.#attributes, ...attributes });
  }
}

/** What an event's requests were for; undefined where a later event counts them, too. */
function costOperation(event: ObservedEvent): string | undefined {
  if (!("resources" in event)) return endOf(event)?.operation;
  if (event.type === "extended") return "extend";
  if (event.type === "released") return "release";
  return event.type === "contended" ? undefined : "acquire";
}
