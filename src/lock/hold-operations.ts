import type { Call } from "../endpoints/call.ts";
import type { Answer } from "../quorum/tally.ts";
import { type Register, release } from "../redis/register.ts";
import type { Settings } from "./options.ts";
import type { Listener } from "./wake-up/wake-up.ts";

/** How a hold is extended and released on one endpoint; what is left out is as for a lock. */
export interface HoldOperations {
  /** Gives it a new ttl, and never creates it; ttl 0 only checks. */
  extend?(call: Call, register: Register, ttl: number): Promise<Answer>;
  /** Releases it, and for `retention` ms, if that is not 0, refuses late requests that would acquire it. */
  release?(call: Call, register: Register, retention: number): Promise<Answer>;
  /** The kind of synchronizer whose waiters are woken up by its releases. Default: they poll. */
  readonly wakes?: string;
}

/** Who is released and waited for. */
type Held = readonly [resources: readonly string[], operations: HoldOperations | undefined];

/** How it is released on one endpoint. */
export function releaseOf(
  settings: Settings,
  ...[resources, operations]: Held
): NonNullable<HoldOperations["release"]> {
  if (operations?.release) return operations.release;
  const kind = kindOf(operations);
  return (kind && settings.wakeUp?.releaser(settings.prefix, kind, resources)) || release;
}

/** Waits for its releases; undefined: nobody publishes them. */
export function listenFor(settings: Settings, ...[resources, operations]: Held): Listener | undefined {
  const kind = kindOf(operations);
  return kind === undefined ? undefined : settings.wakeUp?.listen(settings, kind, resources);
}

const kindOf = (operations: HoldOperations | undefined): string | undefined =>
  operations ? operations.wakes : "lock";
