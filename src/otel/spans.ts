import {
  type Attributes,
  type Context,
  context,
  type Span,
  SpanStatusCode,
  type Tracer,
} from "@opentelemetry/api";
import { endOf, type ObservedEvent } from "./end.ts";

/** A span that has begun, and the context that it began in. */
interface OpenSpan {
  readonly span: Span;
  readonly parent: Context;
}

/** The spans, from the events that begin and end them. */
export class Spans {
  readonly #tracer: Tracer;
  readonly #attributes: Attributes;
  readonly #names: boolean;
  readonly #open = new Map<number, OpenSpan>();

  /**
   * @param attributes of every span
   * @param names whether spans have the names of resources and keys
   */
  constructor(tracer: Tracer, attributes: Attributes, names: boolean) {
    this.#tracer = tracer;
    this.#attributes = attributes;
    this.#names = names;
  }

  /** Begins, extends or ends the span that an event is about. */
  record(event: ObservedEvent): void {
    if (!("id" in event) || event.id === undefined) return;
    const { id, type } = event;
    if (type === "acquiring") this.#begin("redlock.acquire", event, id);
    if (type === "called") this.#begin("idempotency.run", event, id);
    if (type === "resumed") this.#begin("redlock.hold", event, id);
    const { span, parent } = this.#open.get(id) ?? {};
    if (type === "contended") span?.addEvent(type, { "redlock.rounds": event.rounds });
    if (type === "extended") span?.addEvent(type, { "redlock.ttl": event.ttl });
    this.#end(event, id);
    // Beside the span of its acquire, not within it: that one has ended.
    if (type === "acquired") this.#begin("redlock.hold", event, id, parent);
  }

  #begin(name: string, event: ObservedEvent, id: number, parent: Context = context.active()): void {
    const attributes = { ...this.#attributes, ...this.#attributesOf(event) };
    this.#open.set(id, { span: this.#tracer.startSpan(name, { attributes }, parent), parent });
  }

  #end(event: ObservedEvent, id: number): void {
    const end = endOf(event);
    const open = this.#open.get(id);
    if (!end || !open) return;
    this.#open.delete(id);
    const { outcome, error, attributes } = end;
    open.span.setAttributes({ ...attributes, "redlock.outcome": outcome });
    if (error) {
      open.span.setAttribute("error.type", error);
      open.span.setStatus({ code: SpanStatusCode.ERROR, message: error });
    }
    open.span.end();
  }

  /** What is known when it begins. */
  #attributesOf(event: ObservedEvent): Attributes {
    if (!("resources" in event)) {
      return this.#names && "key" in event ? { "idempotency.key": event.key } : {};
    }
    return {
      "redlock.resource_count": event.resources.length,
      ...("fence" in event && { "redlock.fencing": event.fence !== undefined }),
      ...(this.#names && { "redlock.resources": [...event.resources] }),
    };
  }
}
