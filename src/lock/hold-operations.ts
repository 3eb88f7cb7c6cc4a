import type { EndpointRequest } from "../endpoints/endpoint-request.ts";
import { type Cell, type CellAnswer, release } from "../redis/cell.ts";
import type { Settings } from "./options.ts";
import type { Waiter, WakeUpListener } from "./wake-up/wake-up.ts";

/** How a hold is extended and released on one endpoint; what is left out is as for a lock. */
export interface HoldOperations {
  /** Gives it a new ttl, and a plain lock a new value; never creates it. ttl 0 only checks. */
  extend?(call: EndpointRequest, cell: Cell, ttl: number, value?: string): Promise<CellAnswer>;
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
  return (waiter && wakeUp?.publishingRelease(prefix, waiter.kind, resources)) || release;
}

/** Waits for its releases; undefined: nobody publishes them. */
export function listenFor(settings: Settings, ...[resources, operations]: Held): WakeUpListener | undefined {
  const waiter = waiterOf(operations);
  return waiter && settings.wakeUp?.listen(settings, waiter, resources);
}

const waiterOf = (operations: HoldOperations | undefined): Waiter | undefined =>
  operations ? operations.waiter : { kind: "lock" };

/** How often a release asks an endpoint again where other handles of the owner have acquired the lock meanwhile. */
const maxTries = 4;

/**
 * Releases an owner's lock on one endpoint. The request names the tags that this handle has left there, and where another
 * handle has acquired the lock since, the tags that the endpoint returned. So no request can end what is acquired after it
 * was sent. A lock without an owner has none: one request is all.
 *
 * @param isCallerWaiting whether the release has not returned: what another handle has acquired is released as well
 */
export async function releaseUntilGone(
  cell: Cell,
  release: (cell: Cell) => Promise<CellAnswer>,
  isCallerWaiting: () => boolean,
): Promise<CellAnswer> {
  let { handleTags } = cell;
  for (let tries = 0; tries < maxTries; tries += 1) {
    const answer = await release({ ...cell, handleTags });
    if (answer.handleTags === undefined) return answer;
    handleTags = answer.handleTags;
    if (!isCallerWaiting()) break;
  }
  // It stays: the owner has acquired it again.
  return { outcome: "held" };
}
