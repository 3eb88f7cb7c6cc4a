import type { EndpointCall } from "../endpoints/endpoint-call.ts";
import { type Cell, type CellAnswer, end } from "../redis/cell.ts";
import type { Settings } from "./options.ts";
import type { Waiter, WakeUpListener } from "./wake-up/wake-up.ts";

/** How a hold is extended and released on one endpoint. What it leaves out is done as for a lock. */
export interface HoldOperations {
  /** Gives it a new ttl; never creates it. ttl 0 only checks. */
  extend?(call: EndpointCall, cell: Cell, ttl: number): Promise<CellAnswer>;
  /**
   * Releases it.
   *
   * @param tombstoneTtl for how many ms late requests that would acquire it are refused. 0: none can follow
   * @param notify whether those that wait are told
   */
  release?(call: EndpointCall, cell: Cell, tombstoneTtl: number, notify: boolean): Promise<CellAnswer>;
  /** How one that waits for it is told of releases. Default: it polls. */
  readonly waiter?: Waiter;
}

/** Releases on one endpoint, and publishes it where waiters are woken up. */
export type Release = (call: EndpointCall, cell: Cell, tombstoneTtl: number) => Promise<CellAnswer>;

/** The function that releases it on one endpoint. */
export function releaseFunctionOf(
  settings: Settings,
  resources: readonly string[],
  operations: HoldOperations | undefined,
): Release {
  const { prefix, wakeUp } = settings;
  if (operations?.release) {
    return (call, cell, tombstoneTtl) => operations.release!(call, cell, tombstoneTtl, !!wakeUp);
  }
  const waiter = waiterOf(operations);
  const endOne: Release = (call, cell, tombstoneTtl) => end(call, cell, { tombstoneTtl });
  return (waiter && wakeUp?.publishingRelease(prefix, waiter.kind, resources)) || endOne;
}

/** Listens for its releases. Undefined: nobody publishes them. */
export function listenFor(
  settings: Settings,
  resources: readonly string[],
  operations: HoldOperations | undefined,
): WakeUpListener | undefined {
  const waiter = waiterOf(operations);
  return waiter && settings.wakeUp?.listen(settings, waiter, resources);
}

const waiterOf = (operations: HoldOperations | undefined): Waiter | undefined =>
  operations ? operations.waiter : { kind: "lock" };
