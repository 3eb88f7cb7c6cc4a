import type { EndpointError } from "./errors.ts";

/** Fields of every event about an operation. */
export interface OperationEvent {
  readonly resources: readonly string[];
  /** ms since the operation began. */
  readonly elapsed: number;
  /** HTTP requests sent for it so far. */
  readonly requests: number;
  /** Redis commands executed for it so far, as Upstash bills them; without answers that are still under way. */
  readonly commands: number;
}

/** An event of a lock or an endpoint. No event contains a token or any other secret. */
export type RedlockEvent =
  | (OperationEvent & {
      readonly type: "acquired";
      readonly attempts: number;
      readonly fence: number | undefined;
    })
  /** A round found the resource held. `retryIn`: ms until the next round; `undefined` when it was the last. */
  | (OperationEvent & {
      readonly type: "contended";
      readonly attempts: number;
      readonly retryIn: number | undefined;
    })
  | (OperationEvent & { readonly type: "extended"; readonly ttl: number })
  | (OperationEvent & { readonly type: "released"; readonly freed: boolean })
  | { readonly type: "lost"; readonly resources: readonly string[]; readonly reason: string }
  | { readonly type: "endpointError"; readonly endpoint: string; readonly error: EndpointError };

/** Receives events. Its errors and rejections are ignored: observing must not change what is observed. */
export type EventHook<Event> = (event: Event) => void;

/** Calls the hook, if there is one, and ignores its errors. */
export function emit<Event>(hook: EventHook<Event> | undefined, event: Event): void {
  try {
    const returned: unknown = hook?.(event);
    if (returned instanceof Promise) returned.catch(() => undefined);
  } catch {
    // A defect of the user's hook; the lock does not depend on it.
  }
}
