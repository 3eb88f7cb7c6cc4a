import { SpanStatusCode, trace } from "@opentelemetry/api";
import {
  AggregationTemporality,
  InMemoryMetricExporter,
  MeterProvider,
  PeriodicExportingMetricReader,
} from "@opentelemetry/sdk-metrics";
import {
  BasicTracerProvider,
  InMemorySpanExporter,
  type ReadableSpan,
  SimpleSpanProcessor,
} from "@opentelemetry/sdk-trace-base";
import { onTestFinished } from "vitest";
import { type OtelOptions, otel } from "../../src/otel/index.ts";

/** What a span says, without times. */
export interface SpanView {
  readonly name: string;
  readonly attributes: Readonly<Record<string, unknown>>;
  /** The message of the status `ERROR`; undefined where the status is unset. */
  readonly error: string | undefined;
  readonly events: readonly string[];
  readonly parent: string | undefined;
}

/** One measured series: its attributes, and its sum, or the count of its histogram. */
export type Series = readonly [attributes: Readonly<Record<string, unknown>>, value: number];

/** A hook whose spans and metrics stay in memory. */
export interface OtelStand {
  readonly onEvent: ReturnType<typeof otel>;
  readonly tracer: NonNullable<OtelOptions["tracer"]>;
  /** The spans that have ended, in this order. */
  spans(): SpanView[];
  /** Everything that was exported, as text. */
  exported(): Promise<string>;
  /** The series of a metric. */
  series(metric: string): Promise<Series[]>;
  /** The histogram of a metric: its sum and its bounds. */
  histogram(metric: string): Promise<{ sum: number; unit: string; boundaries: number[] }>;
}

/** Opens a stand; it is closed when the test ends. */
export function otelStand(options: Omit<OtelOptions, "tracer" | "meter"> = {}): OtelStand {
  const exporter = new InMemorySpanExporter();
  const tracers = new BasicTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] });
  const measured = new InMemoryMetricExporter(AggregationTemporality.CUMULATIVE);
  const reader = new PeriodicExportingMetricReader({ exporter: measured, exportIntervalMillis: 3_600_000 });
  const meters = new MeterProvider({ readers: [reader] });
  onTestFinished(async () => {
    await Promise.all([tracers.shutdown(), meters.shutdown()]);
  });
  const tracer = tracers.getTracer("test");

  async function metricsNow() {
    measured.reset();
    await meters.forceFlush();
    return measured
      .getMetrics()
      .flatMap(({ scopeMetrics }) => scopeMetrics.flatMap(({ metrics }) => metrics));
  }

  async function metric(name: string) {
    return (await metricsNow()).find(({ descriptor }) => descriptor.name === name);
  }

  return {
    onEvent: otel({ ...options, tracer, meter: meters.getMeter("test") }),
    tracer,
    spans: () => exporter.getFinishedSpans().map(viewOf),
    async exported() {
      const spans = exporter.getFinishedSpans().map((span) => [viewOf(span), span.events, span.status]);
      return JSON.stringify([spans, await metricsNow()]);
    },
    async series(name) {
      const points = (await metric(name))?.dataPoints ?? [];
      return points.map(({ attributes, value }) => [
        attributes,
        typeof value === "number" ? value : Number("count" in value && value.count),
      ]);
    },
    async histogram(name) {
      const { descriptor, dataPoints = [] } = (await metric(name)) ?? {};
      const [value] = dataPoints.map(
        (point) => point.value as { sum: number; buckets: { boundaries: number[] } },
      );
      return { sum: value!.sum, unit: descriptor!.unit, boundaries: value!.buckets.boundaries };
    },
  };
}

function viewOf({ name, attributes, status, events, parentSpanContext }: ReadableSpan): SpanView {
  return {
    name,
    attributes,
    error: status.code === SpanStatusCode.ERROR ? status.message : undefined,
    events: events.map((event) => event.name),
    parent: parentSpanContext && trace.wrapSpanContext(parentSpanContext).spanContext().spanId,
  };
}
