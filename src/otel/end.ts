import type { Attributes } from "@opentelemetry/api";
import { isRedlockError } from "../errors/errors.ts";
import type { HttpEvent } from "../http/index.ts";
import type { IdempotencyEvent } from "../idempotency/events.ts";
import type { RedlockEvent } from "../lock/events.ts";

/** An event of any `onEvent` of this package. */
export type ObservedEvent = RedlockEvent | HttpEvent;

export interface OperationEnd {
  readonly operation: "acquire" | "hold" | "run";
  readonly outcome: string;
  readonly error: string | undefined;
  readonly ms: number;
  readonly attributes: Attributes;
}

/** Being busy is not a failure. */
const runErrors: Readonly<Record<string, string>> = {
  lost: "LEASE_LOST",
  mismatch: "FINGERPRINT_MISMATCH",
  omitted: "RESULT_UNAVAILABLE",
  dead: "DEAD_KEY",
  corrupt: "RECORD_CORRUPT",
  unavailable: "NO_QUORUM",
  unguarded: "NO_QUORUM",
};

export function endOf(event: ObservedEvent): OperationEnd | undefined {
  if ("resources" in event) return "rounds" in event ? endOfAcquire(event) : endOfHold(event);
  return "key" in event && "elapsed" in event ? endOfRun(event) : undefined;
}

function endOfAcquire(event: Extract<ObservedEvent, { rounds: number }>): OperationEnd | undefined {
  if (event.type === "contended") return undefined;
  const { type, rounds, elapsed: ms } = event;
  const attributes = { "redlock.rounds": rounds };
  const end = { operation: "acquire", outcome: type, error: undefined, ms, attributes } as const;
  if (type === "acquired") {
    return { ...end, attributes: { ...attributes, "redlock.fencing": event.fence !== undefined } };
  }
  const error = typeOf(event.error);
  if (!isRedlockError(event.error)) return { ...end, outcome: "aborted", error };
  if (error === "LOCK_HELD") return { ...end, outcome: "held" };
  return { ...end, outcome: error === "NO_QUORUM" ? "unavailable" : "failed", error };
}

function endOfHold(event: Extract<ObservedEvent, { resources: unknown }>): OperationEnd | undefined {
  if (!("held" in event)) return undefined;
  const { type, held: ms } = event;
  const end = { operation: "hold", outcome: type, error: undefined, ms, attributes: {} } as const;
  if (type === "lost") return { ...end, error: "LOCK_LOST", attributes: { "redlock.reason": event.reason } };
  if (type === "detached" || event.freed) return end;
  const isUnknown = event.freed === undefined;
  return { ...end, outcome: isUnknown ? "unreleased" : "gone", error: isUnknown ? "NO_QUORUM" : "LOCK_LOST" };
}

function endOfRun(event: IdempotencyEvent): OperationEnd {
  const { type: outcome, reason, elapsed: ms } = event;
  const isThrown = outcome === "failed" || outcome === "aborted";
  const error = isThrown ? typeOf(event.error) : outcome === "unstored" ? reason : runErrors[outcome];
  return { operation: "run", outcome, error, ms, attributes: reason ? { "redlock.reason": reason } : {} };
}

/** The message may name resources, keys and persons. */
export function typeOf(error: unknown): string {
  const { code, name } = Object(error) as { code?: unknown; name?: unknown };
  for (const type of [code, name]) if (typeof type === "string" && type) return type;
  return "_OTHER";
}
