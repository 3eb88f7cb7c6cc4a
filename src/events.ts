import { sharedByCopies } from "./copies.ts";
import type { EndedRequest } from "./endpoints/request-watch.ts";
import type { EndpointError, LockHolder, QuorumError, RedlockError } from "./errors.ts";

/** Fields of every event about a lock. */
export interface LockEvent {
  /** The lock's number, the same in all its events, and no other lock's or run's in this process. */
  readonly id: number;
  readonly resources: readonly string[];
}

/** Fields of every event about an operation. */
export interface OperationEvent extends LockEvent {
  /** ms since the operation began. */
  readonly elapsed: number;
}

/** Fields of every event that ends a hold. */
export interface HoldEnd extends LockEvent {
  /** ms since the hold began: since before the request that acquired it, or since it was resumed. */
  readonly held: number;
}

/**
 * An event of a lock or an endpoint. No event contains a token or any other secret.
 *
 * A lock's events come in this order, and each call and each hold that begins has exactly one end, whatever happens,
 * unless its process ends:
 *
 * 1. `acquiring`, when the call begins, before anything is sent;
 * 2. `contended` for each round that found the resource held;
 * 3. the end of the call: `acquired`, `notAcquired` or `aborted`. With `acquired` the hold begins. In another process it
 *    goes on with `resumed`, under a number of that process;
 * 4. `extended` for each extension;
 * 5. the end of the hold: `released`, `lost` or `detached`, whichever comes first. Nothing follows it.
 *
 * Where there is a hook, the end of the validity is noticed by a local timer even if nothing else asks for it. The timer
 * keeps no Node process alive.
 */
export type RedlockEvent =
  | (LockEvent & { readonly type: "acquiring" })
  /**
   * A round found the resource held. `retryIn`: ms until the next round; `undefined` when it was the last. `holder`: as in
   * {@link LockHeldError}.
   */
  | (OperationEvent & {
      readonly type: "contended";
      readonly rounds: number;
      readonly holder?: LockHolder | undefined;
      readonly retryIn: number | undefined;
    })
  | (OperationEvent & {
      readonly type: "acquired";
      readonly rounds: number;
      readonly note?: string | undefined;
      readonly fence: number | undefined;
    })
  /** The rounds have failed. `error` is what `acquire` throws. */
  | (OperationEvent & {
      readonly type: "notAcquired";
      readonly rounds: number;
      readonly error: RedlockError;
    })
  /** The call has ended without a result of its rounds: its signal aborted, its deadline had passed, `backoff` threw. */
  | (OperationEvent & { readonly type: "aborted"; readonly rounds: number; readonly error: unknown })
  | (LockEvent & {
      readonly type: "resumed";
      readonly note?: string | undefined;
      readonly fence: number | undefined;
    })
  | (OperationEvent & { readonly type: "extended"; readonly ttl: number })
  /**
   * `freed`: what `release` returns. Undefined: the release failed with `error`, and the ttl frees the lock. If the cause in
   * one of its votes is `permanent`, no release will work there until somebody changes something.
   */
  | (OperationEvent &
      HoldEnd & {
        readonly type: "released";
        readonly freed: boolean | undefined;
        readonly error?: QuorumError | undefined;
      })
  | (HoldEnd & { readonly type: "lost"; readonly reason: string })
  /** This process has done with it, but it stays held: handed over, or, by `once`, left to its ttl. */
  | (HoldEnd & { readonly type: "detached" })
  | { readonly type: "endpointError"; readonly endpoint: string; readonly error: EndpointError }
  /**
   * A request to an endpoint has ended, sometimes after the call that it was for: one for each HTTP request, however many
   * calls share it; over an SDK's client or a socket one for each command. Streams of `wakeUp` are none.
   */
  | (EndedRequest & { readonly type: "request" });

/** Receives events. Its errors and rejections are ignored: observing must not change what is observed. */
export type EventHook<Event> = (event: Event) => void;

/** The number of a new lock or run. One hook may hear the clients of several copies of this package. */
export function newId(): number {
  const ids = sharedByCopies("ids", () => ({ last: 0 }));
  ids.last += 1;
  return ids.last;
}

/** Calls the hook, if there is one, and ignores its errors. */
export function emit<Event>(hook: EventHook<Event> | undefined, event: Event): void {
  try {
    const returned: unknown = hook?.(event);
    if (returned instanceof Promise) returned.catch(() => undefined);
  } catch {
    // A defect of the user's hook; the lock does not depend on it.
  }
}
