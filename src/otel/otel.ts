import { type Attributes, type Meter, metrics, type Tracer, trace } from "@opentelemetry/api";
import { checkOptions, checkType, type Schema, typed } from "../check/check.ts";
import type { ObservedEvent } from "./end.ts";
import { metricsOf } from "./metrics.ts";
import { spansOf } from "./spans.ts";

/** Options of {@link otel}. */
export interface OtelOptions {
  /** Default: the global provider's tracer `redlock-edge`. */
  readonly tracer?: Tracer | undefined;
  /** Default: the global provider's meter `redlock-edge`, as it is at the first event. */
  readonly meter?: Meter | undefined;
  /** Gives spans the names of resources and keys, which may be personal. Metrics never have them. Default false. */
  readonly names?: boolean | undefined;
  /** Attributes of every span and measurement. Keep them few. Default: none. */
  readonly attributes?: Attributes | undefined;
}

const schema: Schema<OtelOptions> = {
  tracer: (name, tracer) => checkType(`${name}.startSpan`, Object(tracer).startSpan, "function"),
  meter: (name, meter) => checkType(`${name}.createCounter`, Object(meter).createCounter, "function"),
  names: typed("boolean"),
  attributes: typed("object"),
};

/**
 * Makes OpenTelemetry's spans and metrics from events, for every `onEvent` of this package. `docs/observability.md`
 * lists them. None contains a token, a stored result or an error's message. A span is created when its operation ends,
 * so your code under a lock stands beside it, not within.
 *
 * @throws TypeError | RangeError an option is wrong or unknown
 *
 * @example
 * const onEvent = otel();
 * const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env), onEvent });
 * const idempotency = new Idempotency(redlock, { onEvent });
 */
export function otel(options: OtelOptions = {}): (event: ObservedEvent) => void {
  const { tracer, meter, names = false, attributes = {} } = checkOptions("otel", options, schema);
  if ("acquire" in options) {
    throw new TypeError("otel takes no client: new Redlock({ endpoints, onEvent: otel() })");
  }
  const recordSpan = spansOf(tracer ?? trace.getTracer("redlock-edge"), attributes, names);
  let measure: ReturnType<typeof metricsOf> | undefined;
  return (event) => {
    // A meter has no effect if the SDK is registered after it.
    measure ??= metricsOf(meter ?? metrics.getMeter("redlock-edge"), attributes);
    measure(event);
    recordSpan(event);
  };
}
