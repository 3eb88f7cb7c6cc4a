import type { Attributes } from "@opentelemetry/api";
import type { RedlockEvent } from "../events.ts";
import type { HttpEvent } from "../http/index.ts";

/** An event of any part of this package that has `onEvent`. */
export type ObservedEvent = RedlockEvent | HttpEvent;

/** What a span and the metrics tell of the end of an operation. */
export interface OperationEnd {
  readonly operation: "acquire" | "hold" | "run";
  readonly outcome: string;
  /** The `error.type`; undefined: nothing is wrong. */
  readonly error: string | undefined;
  /** How long it took. */
  readonly ms: number;
  /** More for the span. */
  readonly attributes: Attributes;
}

/** The codes of a run's ends that come from the key's state, as in its errors. Being busy is not a failure. */
const runErrors: Readonly<Record<string, string>> = {
  lost: "LEASE_LOST",
  mismatch: "FINGERPRINT_MISMATCH",
  omitted: "RESULT_UNAVAILABLE",
  dead: "DEAD_KEY",
  corrupt: "RECORD_CORRUPT",
  unavailable: "NO_QUORUM",
};

/** The end of an operation that an event reports, or undefined. */
export function endOf(event: ObservedEvent): OperationEnd | undefined {
  if ("resources" in event) return endOfLock(event);
  return "id" in event && event.type !== "called" ? endOfRun(event) : undefined;
}

function endOfLock(event: Extract<ObservedEvent, { resources: unknown }>): OperationEnd | undefined {
  switch (event.type) {
    case "acquired":
      return endOfAcquire(event, event.type, undefined, { "redlock.fencing": event.fence !== undefined });
    case "notAcquired": {
      const { code } = event.error;
      // Somebody else has it: that is what a lock is for.
      if (code === "LOCK_HELD") return endOfAcquire(event, "held", undefined);
      return endOfAcquire(event, code === "NO_QUORUM" ? "unavailable" : "failed", code);
    }
    case "aborted":
      return endOfAcquire(event, event.type, typeOf(event.error));
    case "released": {
      if (event.freed) return endOfHold(event, "released", undefined);
      const isUnknown = event.freed === undefined;
      return endOfHold(event, isUnknown ? "unreleased" : "gone", isUnknown ? "NO_QUORUM" : "LOCK_LOST");
    }
    case "lost":
      return endOfHold(event, event.type, "LOCK_LOST", { "redlock.reason": event.reason });
    case "detached":
      return endOfHold(event, event.type, undefined);
    default:
      return undefined;
  }
}

function endOfAcquire(
  event: Extract<ObservedEvent, { rounds: number }>,
  outcome: string,
  error: string | undefined,
  attributes: Attributes = {},
): OperationEnd {
  const { rounds, requests, commands, elapsed: ms } = event;
  const costs = { "redlock.rounds": rounds, "redlock.requests": requests, "redlock.commands": commands };
  return { operation: "acquire", outcome, error, ms, attributes: { ...costs, ...attributes } };
}

function endOfHold(
  { held: ms }: Extract<ObservedEvent, { held: number }>,
  outcome: string,
  error: string | undefined,
  attributes: Attributes = {},
): OperationEnd {
  return { operation: "hold", outcome, error, ms, attributes };
}

function endOfRun(event: Exclude<Extract<ObservedEvent, { id: number }>, RedlockEvent>): OperationEnd {
  const { type: outcome, reason, requests, commands, elapsed: ms } = event;
  const isThrown = outcome === "failed" || outcome === "aborted";
  // Of a run that is `executed`, its own value cannot be wrong, but what it is told to do with it.
  const hasError = isThrown || (outcome === "executed" && event.error !== undefined);
  const error = hasError ? typeOf(event.error) : outcome === "unstored" ? reason : runErrors[outcome];
  const attributes = {
    "redlock.requests": requests,
    "redlock.commands": commands,
    ...(reason && { "redlock.reason": reason }),
  };
  return { operation: "run", outcome, error, ms, attributes };
}

/** The code or the name of an error. Its message stays out: it may name resources, keys and persons. */
function typeOf(error: unknown): string {
  const { code, name } = Object(error) as { code?: unknown; name?: unknown };
  for (const type of [code, name]) if (typeof type === "string" && type) return type;
  return "_OTHER";
}
