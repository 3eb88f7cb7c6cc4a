import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Attributes, type MetricOptions, metrics, trace } from "@opentelemetry/api";
import { describe, expect, test, vi } from "vitest";
import { LockHeldError, RedlockError } from "../../src/errors.ts";
import { endOf, type ObservedEvent } from "../../src/otel/end.ts";
import { type OtelOptions, otel } from "../../src/otel/index.ts";

// What each event becomes: the end of an operation, and instruments.

const costs = { elapsed: 1_500, requests: 4, commands: 7 };
const lock = { id: 1, resources: ["a", "b"] };
const run = { id: 2, key: "k", ...costs };
const spent = { "redlock.requests": 4, "redlock.commands": 7 };
const notAcquired = (error: RedlockError) =>
  ({ type: "notAcquired", ...lock, ...costs, rounds: 3, error }) as const;

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
      { type: "acquired", ...lock, ...costs, rounds: 3, fence: 5 },
      "acquired",
      undefined,
      { "redlock.rounds": 3, ...spent, "redlock.fencing": true },
    ],
    [
      { type: "acquired", ...lock, ...costs, rounds: 3, fence: undefined },
      "acquired",
      undefined,
      { "redlock.rounds": 3, ...spent, "redlock.fencing": false },
    ],
    [notAcquired(new LockHeldError(["a"], 1)), "held", undefined, { "redlock.rounds": 3, ...spent }],
    [
      notAcquired(new RedlockError("NO_QUORUM", "m")),
      "unavailable",
      "NO_QUORUM",
      { "redlock.rounds": 3, ...spent },
    ],
    [
      notAcquired(new RedlockError("LIMIT_MISMATCH", "m")),
      "failed",
      "LIMIT_MISMATCH",
      { "redlock.rounds": 3, ...spent },
    ],
    [
      { type: "aborted", ...lock, ...costs, rounds: 3, error: new TypeError("m") },
      "aborted",
      "TypeError",
      { "redlock.rounds": 3, ...spent },
    ],
    [{ type: "released", ...lock, ...costs, held: 1_500, freed: true }, "released", undefined, {}],
    [{ type: "released", ...lock, ...costs, held: 1_500, freed: false }, "gone", "LOCK_LOST", {}],
    [{ type: "released", ...lock, ...costs, held: 1_500, freed: undefined }, "unreleased", "NO_QUORUM", {}],
    [{ type: "lost", ...lock, held: 1_500, reason: "why" }, "lost", "LOCK_LOST", { "redlock.reason": "why" }],
    [{ type: "detached", ...lock, held: 1_500 }, "detached", undefined, {}],
    [{ type: "executed", ...run }, "executed", undefined, spent],
    [{ type: "replayed", ...run }, "replayed", undefined, spent],
    [{ type: "busy", ...run }, "busy", undefined, spent],
    [{ type: "lost", ...run }, "lost", "LEASE_LOST", spent],
    [{ type: "mismatch", ...run }, "mismatch", "FINGERPRINT_MISMATCH", spent],
    [{ type: "dead", ...run }, "dead", "DEAD_KEY", spent],
    [{ type: "corrupt", ...run }, "corrupt", "RECORD_CORRUPT", spent],
    [{ type: "unavailable", ...run }, "unavailable", "NO_QUORUM", spent],
    [
      { type: "omitted", ...run, reason: "too-large" },
      "omitted",
      "RESULT_UNAVAILABLE",
      { ...spent, "redlock.reason": "too-large" },
    ],
    [
      { type: "unstored", ...run, reason: "no-quorum" },
      "unstored",
      "no-quorum",
      { ...spent, "redlock.reason": "no-quorum" },
    ],
    [
      { type: "failed", ...run, error: { code: "CARD_DECLINED", name: "E" } },
      "failed",
      "CARD_DECLINED",
      spent,
    ],
    [{ type: "failed", ...run, error: { code: 5, name: "E" } }, "failed", "E", spent],
    [{ type: "failed", ...run, error: { code: "", name: "" } }, "failed", "_OTHER", spent],
    [{ type: "failed", ...run, error: undefined }, "failed", "_OTHER", spent],
    [{ type: "failed", ...run, error: "a text about a customer" }, "failed", "_OTHER", spent],
    [{ type: "aborted", ...run, error: new RangeError("m") }, "aborted", "RangeError", spent],
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

  test.each<[event: ObservedEvent, cost: string | undefined]>([
    [{ type: "acquiring", ...lock }, undefined],
    [{ type: "called", ...run }, undefined],
    [{ type: "contended", ...lock, ...costs, rounds: 1, retryIn: 5 }, undefined],
    [{ type: "resumed", ...lock, fence: 1 }, undefined],
    [{ type: "extended", ...lock, ...costs, ttl: 10 }, "extend"],
    [{ type: "extended", ...lock, ...costs, id: undefined, ttl: 10 }, "extend"],
  ])("is not told by %j, whose requests count for %s", (event, cost) => {
    expect(endOf(event)).toBe(undefined);
    const { meter, added } = notedMeter();
    otel({ meter })(event);
    const attributes = { "redlock.operation": cost };
    expect(added).toEqual(
      cost === undefined
        ? []
        : [
            ["redlock.requests", 4, attributes],
            ["redlock.commands", 7, attributes],
          ],
    );
  });

  test("of a hold that had ended before is not told again; its requests count", () => {
    const { meter, added } = notedMeter();
    otel({ meter })({ type: "released", ...lock, ...costs, id: undefined, held: 5, freed: true });
    expect(added.map(([name]) => name)).toEqual(["redlock.requests", "redlock.commands"]);
  });
});

test("the instruments are those of docs/observability.md, with descriptions", () => {
  const { meter, instruments } = notedMeter();
  otel({ meter })({ type: "acquiring", ...lock });
  const page = readFileSync(fileURLToPath(new URL("../../docs/observability.md", import.meta.url)), "utf8");
  const listed = [...page.matchAll(/^\| `([\w.]+)`, (?:histogram|counter) \| (\S+) \|/gm)];
  expect(listed.map(([, name, unit]) => [name, unit])).toEqual(
    [...instruments].map(([name, { unit }]) => [name, unit]),
  );
  const said = [...instruments.values()].map(({ description }) => description);
  expect(new Set(said).size).toBe(8);
  for (const description of said) expect(description).toMatch(/^[A-Z][\w ,]{10,}$/);
  for (const [name, { advice }] of instruments) {
    const last = {
      "redlock.acquire.duration": 10,
      "redlock.hold.duration": 300,
      "idempotency.run.duration": 300,
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
    onEvent({ type: "acquiring", ...lock });
    onEvent({ type: "detached", ...lock, held: 5 });
    expect(meters.mock.calls).toEqual([["redlock-edge"]]);
    const { meter } = notedMeter();
    otel({ meter, tracer: trace.getTracer("mine") })({ type: "acquiring", ...lock });
    expect(meters).toHaveBeenCalledTimes(1);
    expect(tracers).toHaveBeenCalledTimes(2);
  } finally {
    tracers.mockRestore();
    meters.mockRestore();
  }
});
