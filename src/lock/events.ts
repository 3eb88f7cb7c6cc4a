import type { EndedRequest } from "../endpoints/ask.ts";
import type { EndpointError, LockHolder, QuorumError } from "../errors/errors.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { warnOnceAMinute } from "../runtime/warn.ts";

interface LockEvent {
  readonly resources: readonly string[];
}

export interface CallEvent extends LockEvent {
  readonly rounds: number;
  /** ms since the call began. */
  readonly elapsed: number;
}

export type HoldEnd =
  /** `freed`: as `release` returns. `elapsed`: ms since the request. */
  | {
      readonly type: "released";
      readonly elapsed: number;
      readonly freed: boolean | undefined;
      readonly error?: QuorumError | undefined;
    }
  | { readonly type: "lost"; readonly reason: string }
  /** This process is done with it, but it stays held: handed over, or left to its ttl by `once`. */
  | { readonly type: "detached" };

/**
 * An event of a lock or an endpoint. None contains a token or another secret.
 *
 * Each `acquire` or `resume` ends with `acquired` or `notAcquired`, and each hold with `released`, `lost` or
 * `detached`, unless the process ends before.
 */
export type RedlockEvent =
  | (CallEvent & {
      readonly type: "acquired";
      readonly note?: string | undefined;
      readonly fence: number | undefined;
    })
  | (CallEvent & { readonly type: "notAcquired"; readonly error: unknown })
  /** A round found the resource held. `retryIn`: ms until the next round, if there is one. */
  | (CallEvent & {
      readonly type: "contended";
      readonly holder?: LockHolder | undefined;
      readonly retryIn: number | undefined;
    })
  /** A semaphore is in use with another limit as well. Once for each call. */
  | (LockEvent & { readonly type: "limitMismatch"; readonly limit: number; readonly inUse: number })
  /** `status`: as `post` returns. */
  | (LockEvent & { readonly type: "posted"; readonly id: string; readonly status: string })
  /** A mailbox's handler has failed at a message. */
  | (LockEvent & {
      readonly type: "messageFailed";
      readonly id: string;
      readonly attempts: number;
      readonly error: unknown;
    })
  /** `elapsed`: ms since the request of the extension. */
  | (LockEvent & { readonly type: "extended"; readonly ttl: number; readonly elapsed: number })
  /** `held`: ms since before the request that acquired it, or took it over. */
  | (LockEvent & { readonly held: number } & HoldEnd)
  /** Because of an outage and `failOpen`, the routine of `using` runs without a lock. */
  | (LockEvent & { readonly type: "unguarded"; readonly error: QuorumError })
  | { readonly type: "endpointError"; readonly endpoint: string; readonly error: EndpointError }
  /** An HTTP request has ended, for all calls that share it. Over an SDK's client or a socket: a command. */
  | (EndedRequest & { readonly type: "request" });

/** Receives events. Its errors and rejections are ignored. */
export type EventHook<Event> = (event: Event) => void;

export function emit<Event>(hook: EventHook<Event> | undefined, event: Event): void {
  try {
    const returned: unknown = hook?.(event);
    if (returned instanceof Promise) returned.catch(() => undefined);
  } catch {
    // A hook's errors are ignored.
  }
}

/** Emits an event that nobody may miss: without a hook, `line` is on the console. */
export function emitOrWarn<Event extends { readonly type: string }>(
  { onEvent, runtime }: { readonly onEvent?: EventHook<Event> | undefined; readonly runtime: Runtime },
  event: Event,
  line: string,
): void {
  if (onEvent) emit(onEvent, event);
  else warnOnceAMinute(runtime, event.type, line);
}
