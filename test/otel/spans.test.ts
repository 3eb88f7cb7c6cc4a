import { type Attributes, type SpanOptions, SpanStatusCode, type TimeInput } from "@opentelemetry/api";
import { expect, test, vi } from "vitest";
import type { ObservedEvent } from "../../src/otel/end.ts";
import { type OtelOptions, otel } from "../../src/otel/index.ts";

// What a tracer is told, event by event.

const elapsed = 5;
const lock = { resources: ["a", "b"] };
const now = 1_700_000_000_000;

/** The spans that these events make. */
function told(events: readonly ObservedEvent[], options: OtelOptions = {}) {
  vi.useFakeTimers({ now, toFake: ["Date"] });
  const spans: { name: string; ms?: number; attributes: Attributes | undefined; status?: unknown }[] = [];
  const tracer = {
    startSpan(name: string, { attributes, startTime }: SpanOptions) {
      const span: (typeof spans)[number] = { name, attributes };
      return {
        setStatus: (status: unknown) => Object.assign(span, { status }),
        end(time: TimeInput) {
          expect(time).toBe(now);
          spans.push({ ...span, ms: now - Number(startTime) });
        },
      };
    },
  } as unknown as NonNullable<OtelOptions["tracer"]>;
  const onEvent = otel({ ...options, tracer });
  for (const event of events) onEvent(event);
  vi.useRealTimers();
  return spans;
}

test("a lock: a span for the call and one for the hold, each made at its end", () => {
  const events: ObservedEvent[] = [
    { type: "contended", ...lock, elapsed, rounds: 1, retryIn: 25 },
    { type: "acquired", ...lock, elapsed, rounds: 2, fence: 7 },
    { type: "extended", ...lock, elapsed, ttl: 10_000 },
    { type: "released", ...lock, elapsed, held: 9, freed: true },
  ];
  const known = { use: "imports", "redlock.resource_count": 2 };
  expect(told(events, { attributes: { use: "imports" } })).toEqual([
    {
      name: "redlock.acquire",
      ms: elapsed,
      attributes: {
        ...known,
        "redlock.rounds": 2,
        "redlock.fencing": true,
        "redlock.outcome": "acquired",
      },
    },
    { name: "redlock.hold", ms: 9, attributes: { ...known, "redlock.outcome": "released" } },
  ]);
});

test("a failure sets the status, and the type of the error", () => {
  const event: ObservedEvent = { type: "unavailable", key: "k", elapsed };
  const attributes = { "redlock.outcome": "unavailable", "error.type": "NO_QUORUM" };
  const status = { code: SpanStatusCode.ERROR, message: "NO_QUORUM" };
  expect(told([event])).toEqual([{ name: "idempotency.run", ms: elapsed, attributes, status }]);
});
