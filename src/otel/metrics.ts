import type { Attributes, Counter, Histogram, Meter } from "@opentelemetry/api";
import { endOf, type ObservedEvent, type OperationEnd, typeOf } from "./end.ts";

/** In seconds, from one round trip near by to `wait`. */
const waitBounds = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
/** In seconds, up to `maxHold`. */
const holdBounds = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

const durations = {
  acquire: ["redlock.acquire.duration", waitBounds, "From the call of acquire to its end"],
  hold: ["redlock.hold.duration", holdBounds, "From the acquire of a lock to the end of its hold"],
  run: ["idempotency.run.duration", holdBounds, "From the call of run to its end"],
  request: ["redlock.endpoint.request.duration", waitBounds, "From the request to an endpoint to its end"],
} as const;

const counters = {
  "redlock.operations": ["{operation}", "Operations that have ended"],
  "redlock.endpoint.commands": ["{command}", "Commands sent, of which a script is one"],
  "redlock.endpoint.errors": ["{error}", "Answers that did not count"],
  "redlock.mailbox.messages": ["{message}", "Messages posted to mailboxes, and failures at them"],
  "redlock.unguarded": ["{call}", "Calls that ran without protection, in an outage"],
  "idempotency.http.answers": ["{answer}", "Requests refused"],
} as const;

export function metricsOf(meter: Meter, common: Attributes): (event: ObservedEvent) => void {
  const histograms = new Map<string, Histogram>();
  for (const [what, [name, bounds, description]] of Object.entries(durations)) {
    const options = { unit: "s", description, advice: { explicitBucketBoundaries: [...bounds] } };
    histograms.set(what, meter.createHistogram(name, options));
  }
  const counts = new Map<string, Counter>();
  for (const [name, [unit, description]] of Object.entries(counters)) {
    counts.set(name, meter.createCounter(name, { unit, description }));
  }

  const add = (name: keyof typeof counters, attributes: Attributes, value = 1) =>
    counts.get(name)!.add(value, { ...common, ...attributes });

  const record = (what: keyof typeof durations, attributes: Attributes, ms: number) =>
    histograms.get(what)!.record(ms / 1_000, { ...common, ...attributes });

  const recordEnd = ({ operation, outcome, error, ms }: OperationEnd) => {
    const attributes = { "redlock.outcome": outcome, ...(error && { "error.type": error }) };
    record(operation, attributes, ms);
    add("redlock.operations", { "redlock.operation": operation, ...attributes });
  };

  return (event) => {
    if (event.type === "request") {
      const { endpoint, commands, elapsed, failure } = event;
      const attributes = { "redlock.endpoint": endpoint, ...(failure && { "error.type": failure }) };
      record("request", attributes, elapsed);
      add("redlock.endpoint.commands", attributes, commands);
    }
    if (event.type === "endpointError") {
      const { endpoint, error } = event;
      add("redlock.endpoint.errors", { "redlock.endpoint": endpoint, "error.type": error.kind });
    }
    if (event.type === "posted") add("redlock.mailbox.messages", { "redlock.outcome": event.status });
    if (event.type === "messageFailed") {
      add("redlock.mailbox.messages", { "redlock.outcome": "failed", "error.type": typeOf(event.error) });
    }
    if (event.type === "unguarded") add("redlock.unguarded", {});
    if (event.type === "refused") add("idempotency.http.answers", { "error.type": event.code });
    const end = endOf(event);
    if (end) recordEnd(end);
  };
}
