import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Attributes, type MetricOptions, metrics, trace } from "@opentelemetry/api";
import { describe, expect, test, vi } from "vitest";
import { LockHeldError, RedlockError } from "../../src/errors/errors.ts";
import { endOf, type ObservedEvent } from "../../src/otel/end.ts";
import { type OtelOptions, otel } from "../../src/otel/index.ts";

// What each event becomes: the end of an operation, and instruments.

const elapsed = 1_500;
const lock = { resources: ["a", "b"] };
const run = { key: "k", elapsed };
const notAcquired = (error: unknown) =>
  ({ type: "notAcquired", ...lock, elapsed, rounds: 3, error }) as const;

/** A meter that notes its instruments and what is added to them. */
function notedMeter() {
  const instruments = new Map<string, MetricOptions>();
  const added: [name: string, value: number, attributes: Attributes | undefined][] = [];
  const make = (name: string, options: MetricOptions) => {
    instruments.set(name, options);
    const note = (value: number, attributes?: Attributes) => void added.push([name, value, attributes]);
    return { add: note, record: note };
  };
  const meter = { createCounter: make, createHistogram: make } as unknown as NonNullable<
    OtelOptions["meter"]
  >;
  return { meter, instruments, added };
}

describe("the end of an operation", () => {
  test.each<[event: ObservedEvent, outcome: string, error: string | undefined, attributes: Attributes]>([
    [
      { type: "acquired", ...lock, elapsed, rounds: 3, fence: 5 },
      "acquired",
      undefined,
      { "redlock.rounds": 3, "redlock.fencing": true },
    ],
    [
      { type: "acquired", ...lock, elapsed, rounds: 3, fence: undefined },
      "acquired",
      undefined,
      { "redlock.rounds": 3, "redlock.fencing": false },
    ],
    [notAcquired(new LockHeldError(["a"], 1)), "held", undefined, { "redlock.rounds": 3 }],
    [notAcquired(new RedlockError("NO_QUORUM", "m")), "unavailable", "NO_QUORUM", { "redlock.rounds": 3 }],
    [
      notAcquired(new RedlockError("LIMIT_MISMATCH", "m")),
      "failed",
      "LIMIT_MISMATCH",
      { "redlock.rounds": 3 },
    ],
    [notAcquired(new TypeError("m")), "aborted", "TypeError", { "redlock.rounds": 3 }],
    [notAcquired(undefined), "aborted", "_OTHER", { "redlock.rounds": 3 }],
    [{ type: "released", ...lock, elapsed, held: 1_500, freed: true }, "released", undefined, {}],
    [{ type: "released", ...lock, elapsed, held: 1_500, freed: false }, "gone", "LOCK_LOST", {}],
    [{ type: "released", ...lock, elapsed, held: 1_500, freed: undefined }, "unreleased", "NO_QUORUM", {}],
    [{ type: "lost", ...lock, held: 1_500, reason: "why" }, "lost", "LOCK_LOST", { "redlock.reason": "why" }],
    [{ type: "detached", ...lock, held: 1_500 }, "detached", undefined, {}],
    [{ type: "executed", ...run }, "executed", undefined, {}],
    [{ type: "replayed", ...run }, "replayed", undefined, {}],
    [{ type: "busy", ...run }, "busy", undefined, {}],
    [{ type: "lost", ...run }, "lost", "LEASE_LOST", {}],
    [{ type: "mismatch", ...run }, "mismatch", "FINGERPRINT_MISMATCH", {}],
    [{ type: "dead", ...run }, "dead", "DEAD_KEY", {}],
    [{ type: "corrupt", ...run }, "corrupt", "RECORD_CORRUPT", {}],
    [{ type: "unavailable", ...run }, "unavailable", "NO_QUORUM", {}],
    [
      { type: "omitted", ...run, reason: "too-large" },
      "omitted",
      "RESULT_UNAVAILABLE",
      { "redlock.reason": "too-large" },
    ],
    [
      { type: "unstored", ...run, reason: "no-quorum" },
      "unstored",
      "no-quorum",
      { "redlock.reason": "no-quorum" },
    ],
    [{ type: "failed", ...run, error: { code: "CARD_DECLINED", name: "E" } }, "failed", "CARD_DECLINED", {}],
    [{ type: "failed", ...run, error: { code: 5, name: "E" } }, "failed", "E", {}],
    [{ type: "failed", ...run, error: { code: "", name: "" } }, "failed", "_OTHER", {}],
    [{ type: "failed", ...run, error: undefined }, "failed", "_OTHER", {}],
    [{ type: "failed", ...run, error: "a text about a customer" }, "failed", "_OTHER", {}],
    [{ type: "aborted", ...run, error: new RangeError("m") }, "aborted", "RangeError", {}],
  ])("%j is %s", (event, outcome, error, attributes) => {
    const operation = "key" in event ? "run" : "held" in event ? "hold" : "acquire";
    expect(endOf(event)).toEqual({ operation, outcome, error, ms: 1_500, attributes });
    const { meter, added } = notedMeter();
    otel({ meter, attributes: { use: "imports" } })(event);
    const duration = operation === "run" ? "idempotency.run.duration" : `redlock.${operation}.duration`;
    const told = { use: "imports", "redlock.outcome": outcome, ...(error && { "error.type": error }) };
    expect(added).toContainEqual([duration, 1.5, told]);
    expect(added).toContainEqual(["redlock.operations", 1, { "redlock.operation": operation, ...told }]);
  });

  test.each<ObservedEvent>([
    { type: "contended", ...lock, elapsed, rounds: 1, retryIn: 5 },
    { type: "extended", ...lock, elapsed, ttl: 10 },
  ])("is not told by %j", (event) => {
    expect(endOf(event)).toBe(undefined);
    const { meter, added } = notedMeter();
    otel({ meter })(event);
    expect(added).toEqual([]);
  });
});

test.each([undefined, "timeout"] as const)("a request is measured, and its commands count: %s", (failure) => {
  const { meter, added } = notedMeter();
  const request = { type: "request", endpoint: "e1", commands: 7, elapsed, failure } as const;
  otel({ meter, attributes: { use: "imports" } })(request);
  expect(endOf(request)).toBe(undefined);
  const attributes = { use: "imports", "redlock.endpoint": "e1", ...(failure && { "error.type": failure }) };
  expect(added).toEqual([
    ["redlock.endpoint.request.duration", 1.5, attributes],
    ["redlock.endpoint.commands", 7, attributes],
  ]);
});

test.each<[event: ObservedEvent, attributes: Attributes]>([
  [{ type: "posted", resources: ["m"], id: "a", status: "queued" }, { "redlock.outcome": "queued" }],
  [
    {
      type: "messageFailed",
      resources: ["m"],
      id: "a",
      attempts: 2,
      error: new TypeError("about a customer"),
    },
    { "redlock.outcome": "failed", "error.type": "TypeError" },
  ],
])("a message of a mailbox counts, and ends no operation: %j", (event, attributes) => {
  const { meter, added } = notedMeter();
  otel({ meter, attributes: { use: "chat" } })(event);
  expect(endOf(event)).toBe(undefined);
  expect(added).toEqual([["redlock.mailbox.messages", 1, { use: "chat", ...attributes }]]);
});

test("the instruments are those of docs/observability.md, with descriptions", () => {
  const { meter, instruments } = notedMeter();
  otel({ meter })({ type: "detached", ...lock, held: 5 });
  const page = readFileSync(fileURLToPath(new URL("../../docs/observability.md", import.meta.url)), "utf8");
  const listed = [...page.matchAll(/^\| `([\w.]+)`, (?:histogram|counter) \| (\S+) \|/gm)];
  expect(listed.map(([, name, unit]) => [name, unit])).toEqual(
    [...instruments].map(([name, { unit }]) => [name, unit]),
  );
  const said = [...instruments.values()].map(({ description }) => description);
  expect(new Set(said).size).toBe(instruments.size);
  for (const description of said) expect(description).toMatch(/^[A-Z][\w ,]{10,}$/);
  for (const [name, { advice }] of instruments) {
    const last = {
      "redlock.acquire.duration": 10,
      "redlock.hold.duration": 300,
      "idempotency.run.duration": 300,
      "redlock.endpoint.request.duration": 10,
    };
    expect(advice?.explicitBucketBoundaries?.at(-1)).toBe(last[name as keyof typeof last]);
  }
});

test("the global tracer and meter have the package's name; the meter is asked for at the first event", () => {
  const tracers = vi.spyOn(trace, "getTracer");
  const meters = vi.spyOn(metrics, "getMeter");
  try {
    const onEvent = otel();
    expect(tracers.mock.calls).toEqual([["redlock-edge"]]);
    expect(meters).not.toHaveBeenCalled();
    onEvent({ type: "extended", ...lock, elapsed, ttl: 10 });
    onEvent({ type: "detached", ...lock, held: 5 });
    expect(meters.mock.calls).toEqual([["redlock-edge"]]);
    const { meter } = notedMeter();
    otel({ meter, tracer: trace.getTracer("mine") })({ type: "detached", ...lock, held: 5 });
    expect(meters).toHaveBeenCalledTimes(1);
    expect(tracers).toHaveBeenCalledTimes(2);
  } finally {
    tracers.mockRestore();
    meters.mockRestore();
  }
});
