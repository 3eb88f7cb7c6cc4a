import {
  type Attributes,
  type Context,
  context,
  type Span,
  SpanStatusCode,
  type Tracer,
} from "@opentelemetry/api";
import { endOf, type ObservedEvent, type OperationEnd } from "./end.ts";

/** A span that has begun, and the context that it began in. */
interface OpenSpan {
  readonly span: Span;
  readonly parent: Context;
}

/**
 * Spans, from the events that begin and end them.
 *
 * @param common attributes of every span
 * @param names whether spans have the names of resources and keys
 * @returns begins, extends or ends the span that an event is about
 */
export function spansOf(tracer: Tracer, common: Attributes, names: boolean): (event: ObservedEvent) => void {
  const open = new Map<number, OpenSpan>();

  const begin = (name: string, event: ObservedEvent, id: number, parent = context.active()) => {
    const attributes = { ...common, ...attributesOf(event, names) };
    open.set(id, { span: tracer.startSpan(name, { attributes }, parent), parent });
  };

  return (event) => {
    if (!("id" in event)) return;
    const { id, type } = event;
    if (type === "acquiring") begin("redlock.acquire", event, id);
    if (type === "called") begin("idempotency.run", event, id);
    if (type === "resumed") begin("redlock.hold", event, id);
    const { span, parent } = open.get(id) ?? {};
    if (type === "contended") span?.addEvent(type, { "redlock.rounds": event.rounds });
    if (type === "extended") span?.addEvent(type, { "redlock.ttl": event.ttl });
    const end = endOf(event);
    if (end && span) {
      open.delete(id);
      endSpan(span, end);
    }
    // Beside the span of its acquire, not within it: that one has ended.
    if (type === "acquired") begin("redlock.hold", event, id, parent);
  };
}

function endSpan(span: Span, { outcome, error, attributes }: OperationEnd): void {
  span.setAttributes({ ...attributes, "redlock.outcome": outcome });
  if (error) {
    span.setAttribute("error.type", error);
    span.setStatus({ code: SpanStatusCode.ERROR, message: error });
  }
  span.end();
}

/** What is known when it begins. */
function attributesOf(event: ObservedEvent, names: boolean): Attributes {
  if (!("resources" in event)) return names && "key" in event ? { "idempotency.key": event.key } : {};
  return {
    "redlock.resource_count": event.resources.length,
    ...("fence" in event && { "redlock.fencing": event.fence !== undefined }),
    ...(names && { "redlock.resources": [...event.resources] }),
  };
}
