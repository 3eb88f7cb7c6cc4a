import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { type Attributes, type MetricOptions, metrics } from "@opentelemetry/api";
import { expect, test, vi } from "vitest";
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

const failed = (error: unknown) => ({ type: "failed", ...run, error }) as const;
const message = { resources: ["m"], id: "a" };

const events: readonly ObservedEvent[] = [
  { type: "acquired", ...lock, elapsed, rounds: 3, fence: 5 },
  { type: "acquired", ...lock, elapsed, rounds: 3, fence: undefined },
  notAcquired(new LockHeldError(["a"], 1)),
  notAcquired(new RedlockError("NO_QUORUM", "m")),
  notAcquired(new RedlockError("LIMIT_MISMATCH", "m")),
  notAcquired(new TypeError("m")),
  notAcquired(undefined),
  { type: "released", ...lock, elapsed, held: 1_500, freed: true },
  { type: "released", ...lock, elapsed, held: 1_500, freed: false },
  { type: "released", ...lock, elapsed, held: 1_500, freed: undefined },
  { type: "lost", ...lock, held: 1_500, reason: "why" },
  { type: "detached", ...lock, held: 1_500 },
  { type: "executed", ...run },
  { type: "replayed", ...run },
  { type: "busy", ...run },
  { type: "lost", ...run },
  { type: "mismatch", ...run },
  { type: "dead", ...run },
  { type: "corrupt", ...run },
  { type: "unavailable", ...run },
  { type: "unguarded", ...run },
  { type: "refused", status: 400, code: "KEY_MISSING", key: undefined, error: undefined },
  { type: "omitted", ...run, reason: "too-large" },
  { type: "unstored", ...run, reason: "no-quorum" },
  failed({ code: "CARD_DECLINED", name: "E" }),
  failed({ code: 5, name: "E" }),
  failed({ code: "", name: "" }),
  failed(undefined),
  failed("a text about a customer"),
  { type: "aborted", ...run, error: new RangeError("m") },
  { type: "contended", ...lock, elapsed, rounds: 1, retryIn: 5 },
  { type: "extended", ...lock, elapsed, ttl: 10 },
  { type: "request", endpoint: "e1", commands: 7, elapsed, failure: undefined },
  { type: "request", endpoint: "e1", commands: 7, elapsed, failure: "timeout" },
  { type: "posted", ...message, status: "queued" },
  { type: "messageFailed", ...message, attempts: 2, error: new TypeError("about a customer") },
];

test("each event ends an operation, and is added to instruments, as in ends.txt", async () => {
  const lines = events.flatMap((event) => {
    const { meter, added } = notedMeter();
    otel({ meter, attributes: { use: "imports" } })(event);
    const { type, error, ...rest } = event as ObservedEvent & { error?: object };
    const of = error instanceof Error ? `${error.name} with ${Object(error).code}` : JSON.stringify(error);
    const said = `${type} ${"error" in event ? `${of} ` : ""}${JSON.stringify(rest)}`;
    return [
      said,
      `    ends ${JSON.stringify(endOf(event))}`,
      ...added.map((each) => `    adds ${JSON.stringify(each)}`),
    ];
  });
  await expect(`${lines.join("\n")}\n`).toMatchFileSnapshot("ends.txt");
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
  const bounds = [...instruments.values()].flatMap(
    ({ advice }) => advice?.explicitBucketBoundaries?.at(-1) ?? [],
  );
  expect(bounds).toEqual([10, 300, 300, 10]);
});

test("the global meter is asked for at the first event, and one that is given is used", () => {
  using meters = vi.spyOn(metrics, "getMeter");
  const detached = { type: "detached", ...lock, held: 5 } as const;
  otel({ meter: notedMeter().meter })(detached);
  const onEvent = otel();
  expect(meters).not.toHaveBeenCalled();
  onEvent(detached);
  onEvent(detached);
  expect(meters.mock.calls).toEqual([["redlock-edge"]]);
});
