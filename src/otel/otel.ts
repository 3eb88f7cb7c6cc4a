import { type Attributes, type Meter, metrics, type Tracer, trace } from "@opentelemetry/api";
import { checkOptions, checkType, type Schema, typed } from "../check/check.ts";
import type { ObservedEvent } from "./end.ts";
import { metricsOf } from "./metrics.ts";
import { spansOf } from "./spans.ts";

/** Options of {@link otel}. `undefined` leaves the default in place. */
export interface OtelOptions {
  /** Makes the spans. Default: the global provider's tracer `redlock-edge`. */
  readonly tracer?: Tracer | undefined;
  /** Makes the instruments. Default: the global provider's meter `redlock-edge`, as it is at the first event. */
  readonly meter?: Meter | undefined;
  /**
   * Whether spans have the names of resources and keys. They are many, and may be personal, so metrics never have them.
   * Default false.
   */
  readonly names?: boolean | undefined;
  /** Attributes of every span and every measurement, for example the purpose of the locks. Keep them few. Default: none. */
  readonly attributes?: Attributes | undefined;
}

// As a record, so that the compiler notices when one is missing.
const schema: Schema<OtelOptions> = {
  tracer: (name, tracer) => checkType(`${name}.startSpan`, Object(tracer).startSpan, "function"),
  meter: (name, meter) => checkType(`${name}.createCounter`, Object(meter).createCounter, "function"),
  names: typed("boolean"),
  attributes: typed("object"),
};

/**
 * Spans and metrics of OpenTelemetry, from the events of locks, synchronizers, idempotent runs and requests. One function
 * fits every `onEvent` of this package. `docs/observability.md` lists the spans, the attributes and the metrics. None
 * contains a token, a stored result, or an error's message.
 *
 * Each span is created when its operation ends, with the context that is active then as its parent. The handler of a run and
 * the code that holds a lock are beside these spans, not within them, because an event cannot change the active context.
 *
 * @throws TypeError | RangeError when an option is wrong or unknown
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
    // Not before: a meter of the API stays without effect if the SDK is registered after it.
    measure ??= metricsOf(meter ?? metrics.getMeter("redlock-edge"), attributes);
    measure(event);
    recordSpan(event);
  };
}
