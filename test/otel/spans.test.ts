import { type Attributes, type Context, context, SpanStatusCode } from "@opentelemetry/api";
import { expect, test } from "vitest";
import type { ObservedEvent } from "../../src/otel/end.ts";
import { type OtelOptions, otel } from "../../src/otel/index.ts";

// What a tracer is told, event by event.

const elapsed = 5;
const lock = { id: 1, resources: ["a", "b"] };
const known = { "redlock.resource_count": 2 };

/** The calls of a tracer and its spans, in their order, after these events. */
function told(events: readonly ObservedEvent[], options: OtelOptions = {}) {
  const calls: unknown[][] = [];
  const parents: (Context | undefined)[] = [];
  const tracer = {
    startSpan(name: string, { attributes }: { attributes: Attributes }, parent?: Context) {
      calls.push(["start", name, attributes]);
      parents.push(parent);
      const note =
        (what: string) =>
        (...args: unknown[]) =>
          void calls.push([what, name, ...args]);
      return {
        addEvent: note("event"),
        setAttributes: note("attributes"),
        setAttribute: note("attribute"),
        setStatus: note("status"),
        end: note("end"),
      };
    },
  } as unknown as NonNullable<OtelOptions["tracer"]>;
  const onEvent = otel({ ...options, tracer });
  for (const event of events) onEvent(event);
  return { calls, parents };
}

const acquire = "redlock.acquire";
const hold = "redlock.hold";
const acquired: ObservedEvent = { type: "acquired", ...lock, elapsed, rounds: 2, fence: 7 };
const released: ObservedEvent = { type: "released", ...lock, elapsed, held: 9, freed: true };

test("a lock: two spans beside each other, with the rounds and the extensions as events", () => {
  const { calls, parents } = told([
    { type: "acquiring", ...lock },
    { type: "contended", ...lock, elapsed, rounds: 1, retryIn: 25 },
    acquired,
    { type: "extended", ...lock, elapsed, ttl: 10_000 },
    released,
  ]);
  const atEnd = { "redlock.rounds": 2, "redlock.fencing": true };
  expect(calls).toEqual([
    ["start", acquire, known],
    ["event", acquire, "contended", { "redlock.rounds": 1 }],
    ["attributes", acquire, { ...atEnd, "redlock.outcome": "acquired" }],
    ["end", acquire],
    ["start", hold, { ...known, "redlock.fencing": true }],
    ["event", hold, "extended", { "redlock.ttl": 10_000 }],
    ["attributes", hold, { "redlock.outcome": "released" }],
    ["end", hold],
  ]);
  expect(parents).toEqual([context.active(), context.active()]);
});

test("a failure sets the status, and the type of the error", () => {
  const { calls } = told([
    { type: "resumed", ...lock, fence: undefined },
    { ...released, freed: undefined },
  ]);
  expect(calls).toEqual([
    ["start", hold, { ...known, "redlock.fencing": false }],
    ["attributes", hold, { "redlock.outcome": "unreleased" }],
    ["attribute", hold, "error.type", "NO_QUORUM"],
    ["status", hold, { code: SpanStatusCode.ERROR, message: "NO_QUORUM" }],
    ["end", hold],
  ]);
});

test("a span ends once, and nothing is told of what did not begin here", () => {
  const lost: ObservedEvent = { type: "lost", ...lock, held: 9, reason: "its validity ended" };
  const { calls } = told([{ type: "acquiring", ...lock }, acquired, released, released, lost]);
  expect(calls.filter(([what]) => what === "end")).toEqual([
    ["end", acquire],
    ["end", hold],
  ]);
  const strange: ObservedEvent[] = [
    released,
    lost,
    { type: "extended", ...lock, elapsed, ttl: 5 },
    { type: "contended", ...lock, elapsed, rounds: 1, retryIn: undefined },
    { type: "executed", id: 3, key: "k", elapsed },
  ];
  expect(told(strange).calls).toEqual([]);
});
