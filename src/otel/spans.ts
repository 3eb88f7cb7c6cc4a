import { type Attributes, SpanStatusCode, type Tracer } from "@opentelemetry/api";
import { systemRuntime } from "../runtime/runtime.ts";
import { endOf, type ObservedEvent } from "./end.ts";

const spanNames = { acquire: "redlock.acquire", hold: "redlock.hold", run: "idempotency.run" } as const;

/** The active context is the parent, because a hook is called in the context of the call. */
export function spansOf(tracer: Tracer, common: Attributes, names: boolean): (event: ObservedEvent) => void {
  return (event) => {
    const end = endOf(event);
    if (!end) return;
    const { operation, outcome, error, ms } = end;
    const now = systemRuntime.now();
    const attributes = {
      ...common,
      ...subjectOf(event, names),
      ...end.attributes,
      "redlock.outcome": outcome,
      ...(error && { "error.type": error }),
    };
    const span = tracer.startSpan(spanNames[operation], { attributes, startTime: now - ms });
    if (error) span.setStatus({ code: SpanStatusCode.ERROR, message: error });
    span.end(now);
  };
}

function subjectOf(event: ObservedEvent, names: boolean): Attributes {
  if (!("resources" in event)) return names && "key" in event ? { "idempotency.key": event.key } : {};
  return {
    "redlock.resource_count": event.resources.length,
    ...(names && { "redlock.resources": [...event.resources] }),
  };
}
