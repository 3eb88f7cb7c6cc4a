// A job under a lock, with an idempotent payment in it: its spans and metrics, printed to the console.
//
//   npx redis-rest-local              # in another terminal; paste the export lines that it prints here
//   node examples/otel/console.mjs

import { context, metrics, trace } from "@opentelemetry/api";
import { AsyncLocalStorageContextManager } from "@opentelemetry/context-async-hooks";
import {
  ConsoleMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import { BasicTracerProvider, BatchSpanProcessor, ConsoleSpanExporter } from "@opentelemetry/sdk-trace-base";
import { endpointsFromEnv, Redlock } from "redlock-edge";
import { Idempotency } from "redlock-edge/idempotency";
import { otel } from "redlock-edge/otel";

// The SDK, as every program sets it up once; in production with an OTLP exporter in place of the console.
const tracers = new BasicTracerProvider({
  spanProcessors: [new BatchSpanProcessor(new ConsoleSpanExporter())],
});
const reader = new PeriodicExportingMetricReader({ exporter: new ConsoleMetricExporter() });
const meters = new MeterProvider({ readers: [reader] });
trace.setGlobalTracerProvider(tracers);
metrics.setGlobalMeterProvider(meters);
context.setGlobalContextManager(new AsyncLocalStorageContextManager().enable());

// One function for every `onEvent`.
const onEvent = otel();
const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env), onEvent });
const idempotency = new Idempotency(redlock, { onEvent });

await trace.getTracer("example").startActiveSpan("job", async (span) => {
  await redlock.using("invoice:42", async () => {
    const { status } = await idempotency.run("payment:42", () => ({ paid: true }));
    console.log(`the payment was ${status}`);
  });
  // Held by somebody else: no error, but an outcome.
  await redlock.using("invoice:43", async () => {
    console.log(`invoice:43 is held; again: ${await redlock.tryAcquire("invoice:43")}`);
  });
  span.end();
});

// Spans and metrics leave in batches: without this, the last ones would be lost.
await Promise.all([tracers.shutdown(), meters.shutdown()]);
