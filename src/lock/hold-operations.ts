import type { Call } from "../endpoints/call.ts";
import { type Register, type RegisterAnswer, release } from "../redis/register.ts";
import type { Settings } from "./options.ts";
import type { Listener, Waiter } from "./wake-up/wake-up.ts";

/** How a hold is extended and released on one endpoint; what is left out is as for a lock. */
export interface HoldOperations {
  /** Gives it a new ttl, and a plain lock a new value; never creates it. ttl 0 only checks. */
  extend?(call: Call, register: Register, ttl: number, value?: string): Promise<RegisterAnswer>;
  /**
   * Releases it, and for `retention` ms, if that is not 0, refuses late requests that would acquire it.
   *
   * @param tells whether those that wait are told
   */
  release?(call: Call, register: Register, retention: number, tells: boolean): Promise<RegisterAnswer>;
  /** How one that waits for it is told of releases. Default: it polls. */
  readonly waiter?: Waiter;
}

/** Who is released and waited for. */
type Held = readonly [resources: readonly string[], operations: HoldOperations | undefined];

/** Releases on one endpoint, and tells those that wait, where they are to be woken up. */
export type Release = (call: Call, register: Register, retention: number) => Promise<RegisterAnswer>;

/** How it is released on one endpoint. */
export function releaseOf(settings: Settings, ...[resources, operations]: Held): Release {
  const { prefix, wakeUp } = settings;
  if (operations?.release) {
    return (call, register, retention) => operations.release!(call, register, retention, !!wakeUp);
  }
  const waiter = waiterOf(operations);
  return (waiter && wakeUp?.releaser(prefix, waiter.kind, resources)) || release;
}

/** Waits for its releases; undefined: nobody publishes them. */
export function listenFor(settings: Settings, ...[resources, operations]: Held): Listener | undefined {
  const waiter = waiterOf(operations);
  return waiter && settings.wakeUp?.listen(settings, waiter, resources);
}

const waiterOf = (operations: HoldOperations | undefined): Waiter | undefined =>
  operations ? operations.waiter : { kind: "lock" };

/** How often a release asks an endpoint again where other handles of the owner have acquired the lock meanwhile. */
const maxTries = 4;

/**
 * Releases an owner's lock on one endpoint. The request names the marks that this handle has left there, and where another
 * handle has acquired the lock since, the marks that the endpoint returned. So no request can end what is acquired after
 * it was sent. A lock without an owner has no marks: one request is all.
 *
 * @param goesOn whether what another handle has acquired is still to be released
 */
export async function releaseJoined(
  register: Register,
  release: (register: Register) => Promise<RegisterAnswer>,
  goesOn: () => boolean,
): Promise<RegisterAnswer> {
  let { marks } = register;
  for (let tries = 0; tries < maxTries; tries += 1) {
    const answer = await release({ ...register, marks });
    if (answer.marks === undefined) return answer;
    marks = answer.marks;
    if (!goesOn()) break;
  }
  // It stays: the owner has acquired it again.
  return { outcome: "held" };
}
