/**
 * Spans and metrics of OpenTelemetry for locks and runs.
 *
 * @module redlock-edge/otel
 */
export type { ObservedEvent } from "./end.ts";
export { type OtelOptions, otel } from "./otel.ts";
