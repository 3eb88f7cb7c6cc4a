import type { EndpointRequest } from "../endpoints/endpoint-request.ts";
import { type Cell, type CellAnswer, end } from "../redis/cell.ts";
import type { Settings } from "./options.ts";
import type { Waiter, WakeUpListener } from "./wake-up/wake-up.ts";

/** How a hold is extended and released on one endpoint; what is left out is as for a lock. */
export interface HoldOperations {
  /** Gives it a new ttl; never creates it. ttl 0 only checks. */
  extend?(call: EndpointRequest, cell: Cell, ttl: number): Promise<CellAnswer>;
  /**
   * Releases it, and for `retention` ms, if that is not 0, refuses late requests that would acquire it.
   *
   * @param notify whether those that wait are told
   */
  release?(call: EndpointRequest, cell: Cell, retention: number, notify: boolean): Promise<CellAnswer>;
  /** How one that waits for it is told of releases. Default: it polls. */
  readonly waiter?: Waiter;
}

/** Who is released and waited for. */
type Held = readonly [resources: readonly string[], operations: HoldOperations | undefined];

/** Releases on one endpoint, and tells those that wait, where they are to be woken up. */
export type Release = (call: EndpointRequest, cell: Cell, retention: number) => Promise<CellAnswer>;

/** How it is released on one endpoint. */
export function releaseFunctionOf(settings: Settings, ...[resources, operations]: Held): Release {
  const { prefix, wakeUp } = settings;
  if (operations?.release) {
    return (call, cell, retention) => operations.release!(call, cell, retention, !!wakeUp);
  }
  const waiter = waiterOf(operations);
  const endOne: Release = (call, cell, retention) => end(call, cell, { retention });
  return (waiter && wakeUp?.publishingRelease(prefix, waiter.kind, resources)) || endOne;
}

/** Waits for its releases; undefined: nobody publishes them. */
export function listenFor(settings: Settings, ...[resources, operations]: Held): WakeUpListener | undefined {
  const waiter = waiterOf(operations);
  return waiter && settings.wakeUp?.listen(settings, waiter, resources);
}

const waiterOf = (operations: HoldOperations | undefined): Waiter | undefined =>
  operations ? operations.waiter : { kind: "lock" };
