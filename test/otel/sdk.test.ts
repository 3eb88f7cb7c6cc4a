import { context, type Span, SpanStatusCode } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";
import { memoryEndpoint } from "../../local/src/memory/index.ts";
import { withIdempotency } from "../../src/http/index.ts";
import { Idempotency } from "../../src/idempotency/index.ts";
import { Redlock } from "../../src/index.ts";
import { type OtelOptions, otel } from "../../src/otel/index.ts";
import { link } from "../support/link.ts";
import { until } from "../support/until.ts";

// The spans that OpenTelemetry's SDK exports of locks, runs and requests. ends.test.ts has every event, and what is counted.

beforeAll(() => {
  context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());
});
afterAll(() => context.disable());

/** Clients whose spans stay in memory. */
function open(options: Omit<OtelOptions, "tracer"> = {}) {
  const exporter = new InMemorySpanExporter();
  const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  onTestFinished(() => tracers.shutdown());
  const tracer = tracers.getTracer("test");
  const onEvent = otel({ ...options, tracer });
  const links = ["e1", "e2", "e3"].map((name) => link(memoryEndpoint({ name })));
  const redlock = new Redlock({ endpoints: links, onEvent, wait: 0 });
  const spans = () =>
    exporter.getFinishedSpans().map(({ name, attributes, status, parentSpanContext, duration }) => ({
      name,
      ms: duration[0] * 1_000 + duration[1] / 1e6,
      outcome: attributes["redlock.outcome"],
      error: status.code === SpanStatusCode.ERROR ? status.message : undefined,
      attributes,
      parent: parentSpanContext?.spanId,
    }));
  return { tracer, onEvent, links, redlock, idempotency: new Idempotency(redlock, { onEvent }), spans };
}

test("a lock has two spans, in the contexts of the calls that end them", async () => {
  const { redlock, tracer, spans } = open();
  const opened: Span[] = [];
  await tracer.startActiveSpan("request", async (span) => {
    opened.push(span);
    const lock = await redlock.acquire(["a", "b"], { fencing: true });
    expect(spans().map(({ name }) => name)).toEqual(["redlock.acquire"]);
    await lock.extend();
    await tracer.startActiveSpan("cleanup", async (cleanup) => {
      opened.push(cleanup);
      await lock.release();
      cleanup.end();
    });
    span.end();
  });
  const [request, cleanup] = opened.map((span) => span.spanContext().spanId);
  const attributes = { "redlock.resource_count": 2, "redlock.rounds": 1, "redlock.fencing": true };
  expect(spans()).toMatchObject([
    { name: "redlock.acquire", outcome: "acquired", error: undefined, parent: request, attributes },
    { name: "redlock.hold", outcome: "released", error: undefined, parent: cleanup },
    { name: "cleanup", parent: request },
    { name: "request", parent: undefined },
  ]);
});

test("what ends by a timer, or after a wait for others, has the context of its call", async () => {
  const { redlock, idempotency, tracer, spans } = open({ attributes: { use: "imports" } });
  const inSpan = (name: string, work: () => Promise<unknown>) =>
    tracer.startActiveSpan(name, async (span) => {
      await work();
      span.end();
      return span.spanContext().spanId;
    });
  const ends = () => spans().filter(({ attributes }) => "redlock.outcome" in attributes);
  const calls = [
    // Nobody releases it.
    inSpan("first", () => redlock.acquire("r", { ttl: 500 })),
    inSpan("second", () => redlock.using("r", { wait: 10_000 }, () => undefined)),
    inSpan("third", () => idempotency.run("k", () => new Promise((resolve) => setTimeout(resolve, 50)))),
    inSpan("fourth", () => idempotency.run("k", { wait: 10_000 }, () => expect.unreachable("it ran twice"))),
  ];
  const [first, second, third, fourth] = await Promise.all(calls);
  // The first hold ends by its own timer, which may come after the second has it.
  await until(() => ends().length > 5, "the end of every call and hold");
  expect(
    ends()
      .map(({ name, outcome, parent }) => `${name} ${outcome} ${parent}`)
      .sort(),
  ).toEqual(
    [
      `redlock.acquire acquired ${first}`,
      `redlock.hold lost ${first}`,
      `redlock.acquire acquired ${second}`,
      `redlock.hold released ${second}`,
      `idempotency.run executed ${third}`,
      `idempotency.run replayed ${fourth}`,
    ].sort(),
  );
  for (const { attributes } of ends()) expect(attributes.use).toBe("imports");
  // It is made at its end, and as long as the run.
  expect(ends().find(({ outcome }) => outcome === "executed")!.ms).toBeGreaterThan(40);
});

test("a run and a request have one span, whatever becomes of them", async () => {
  const { redlock, idempotency, links, onEvent, spans } = open();
  await idempotency.run("k", () => 1);
  await idempotency.run("k", () => 2);
  const failure = Object.assign(new Error("about a customer"), { code: "CARD_DECLINED" });
  await expect(idempotency.run("f", () => Promise.reject(failure))).rejects.toBe(failure);
  const answer = async (key: string | undefined, failOpen = false) => {
    const headers = key === undefined ? {} : { "idempotency-key": key };
    const request = new Request("https://shop.example/pay", { method: "POST", headers });
    return (await withIdempotency(request, () => new Response("paid"), { redlock, onEvent, failOpen }))
      .status;
  };
  expect([await answer("k"), await answer(undefined)]).toEqual([200, 400]);
  for (const each of links) each.fate = () => "refused";
  expect([await answer("k"), await answer("k", true)]).toEqual([503, 200]);
  expect(spans().map(({ name, outcome, error }) => [name, outcome, error])).toEqual(
    [
      ["executed", undefined],
      ["replayed", undefined],
      ["failed", "CARD_DECLINED"],
      ["executed", undefined],
      ["unavailable", "NO_QUORUM"],
      ["unguarded", "NO_QUORUM"],
    ].map((end) => ["idempotency.run", ...end]),
  );
  expect(JSON.stringify(spans())).not.toContain("about a customer");
});

test("resources and keys are named only where it is asked for, and never a token or a result", async () => {
  for (const names of [false, true]) {
    const { redlock, idempotency, spans } = open({ names });
    const lock = await redlock.acquire("invoice:42", { fencing: true });
    await lock.extend();
    await lock.release();
    await redlock.acquire("invoice:42", { ttl: 9 }).catch(() => undefined);
    await idempotency.run("order-of-jane", () => "a result");
    const text = JSON.stringify(spans());
    for (const name of ["invoice:42", "order-of-jane"]) expect(text.includes(name)).toBe(names);
    for (const secret of [lock.token, "a result"]) expect(text).not.toContain(secret);
  }
});

test("a tracer that throws changes nothing, nor does a process without an SDK", async () => {
  const startSpan = () => {
    throw new Error("the tracer's own");
  };
  for (const onEvent of [otel({ tracer: { ...open().tracer, startSpan } as never }), otel()]) {
    const redlock = new Redlock({ endpoints: [memoryEndpoint()], onEvent });
    const idempotency = new Idempotency(redlock, { onEvent });
    const outcome = await redlock.using("r", () => idempotency.run("k", () => 1));
    expect(outcome).toEqual({ status: "executed", value: 1 });
  }
});
