import type { EndedRequest } from "../endpoints/ask.ts";
import type { EndpointError, LockHolder, QuorumError } from "../errors/errors.ts";

/** Fields of every event about a lock. */
interface LockEvent {
  readonly resources: readonly string[];
}

/** Fields of every event about a call that acquires or resumes. */
export interface CallEvent extends LockEvent {
  readonly rounds: number;
  /** ms since the call began. */
  readonly elapsed: number;
}

/** How a hold ends. */
export type HoldEnd =
  /**
   * `freed`: what `release` returns. Undefined: the release failed with `error`, and the ttl frees the lock. If the cause in
   * one of its votes is `permanent`, no release will work there until somebody changes something. `elapsed`: ms since the
   * request of the release.
   */
  | {
      readonly type: "released";
      readonly elapsed: number;
      readonly freed: boolean | undefined;
      readonly error?: QuorumError | undefined;
    }
  | { readonly type: "lost"; readonly reason: string }
  /** This process has done with it, but it stays held: handed over, or, by `once`, left to its ttl. */
  | { readonly type: "detached" };

/**
 * An event of a lock or an endpoint. No event contains a token or any other secret.
 *
 * Each call of `acquire` ends with `acquired` or `notAcquired`, and each hold ends with `released`, `lost` or `detached`,
 * unless its process ends before. Nothing follows the end of a hold. A call of `resume` ends like an acquire.
 *
 * Where there is a hook, the end of the validity is noticed by a local timer even if nothing else asks for it. The timer
 * keeps no Node process alive.
 */
export type RedlockEvent =
  /** The hold has begun. */
  | (CallEvent & {
      readonly type: "acquired";
      readonly note?: string | undefined;
      readonly fence: number | undefined;
    })
  /** The call has ended without a lock. `error`: the error of its rejection. */
  | (CallEvent & { readonly type: "notAcquired"; readonly error: unknown })
  /**
   * A round found the resource held. `retryIn`: ms until the next round, or `undefined` after the last one. `holder`: as in
   * {@link LockHeldError}.
   */
  | (CallEvent & {
      readonly type: "contended";
      readonly holder?: LockHolder | undefined;
      readonly retryIn: number | undefined;
    })
  /** A semaphore is, or was until its last permit of that limit, used with another limit as well. Once for each call. */
  | (LockEvent & { readonly type: "limitMismatch"; readonly limit: number; readonly inUse: number })
  /** A message was posted to a mailbox. `status`: what `post` returns. */
  | (LockEvent & { readonly type: "posted"; readonly id: string; readonly status: string })
  /** A mailbox's handler has failed at a message, for the nth time. */
  | (LockEvent & {
      readonly type: "messageFailed";
      readonly id: string;
      readonly attempts: number;
      readonly error: unknown;
    })
  /** `elapsed`: ms since the request of the extension. */
  | (LockEvent & { readonly type: "extended"; readonly ttl: number; readonly elapsed: number })
  /** `held`: ms since the hold began: since before the request that acquired it, or took it over. */
  | (LockEvent & { readonly held: number } & HoldEnd)
  /** There was an outage, and with `failOpen` the routine of `using` runs without a lock. `error`: why. */
  | (LockEvent & { readonly type: "unguarded"; readonly error: QuorumError })
  | { readonly type: "endpointError"; readonly endpoint: string; readonly error: EndpointError }
  /**
   * A request to an endpoint has ended, sometimes after the call that it was for: one for each HTTP request, however many
   * calls share it. Over an SDK's client or a socket one for each command. Streams of `wakeUp` are none.
   */
  | (EndedRequest & { readonly type: "request" });

/** Receives events. Its errors and rejections are ignored: observing must not change the observed call. */
export type EventHook<Event> = (event: Event) => void;

/** Calls the hook, if there is one, and ignores its errors. */
export function emit<Event>(hook: EventHook<Event> | undefined, event: Event): void {
  try {
    const returned: unknown = hook?.(event);
    if (returned instanceof Promise) returned.catch(() => undefined);
  } catch {
    // A defect of the user's hook. The lock does not depend on it.
  }
}
