import type { EndpointError } from "./errors.ts";

/** What every event about an operation tells. */
export interface OperationEvent {
  readonly resources: readonly string[];
  /** ms since the operation began. */
  readonly elapsed: number;
  /** HTTP requests sent for it so far. */
  readonly requests: number;
  /** Redis commands executed for it so far, as Upstash bills them; answers still under way are not in yet. */
  readonly commands: number;
}

/** What happens to locks and endpoints. No event carries a token or any other secret. */
export type RedlockEvent =
  | (OperationEvent & {
      readonly type: "acquired";
      readonly attempts: number;
      readonly fence: number | undefined;
    })
  /** A round found the resource held; `retryIn` ms until the next, `undefined` when it was the last. */
  | (OperationEvent & {
      readonly type: "contended";
      readonly attempts: number;
      readonly retryIn: number | undefined;
    })
  | (OperationEvent & { readonly type: "extended"; readonly ttl: number })
  | (OperationEvent & { readonly type: "released"; readonly freed: boolean })
  | { readonly type: "lost"; readonly resources: readonly string[]; readonly reason: string }
  | { readonly type: "endpointError"; readonly endpoint: string; readonly error: EndpointError };

/** Hears of events. What it throws or rejects with is ignored: observing must not change what is observed. */
export type EventHook<Event> = (event: Event) => void;

/** Calls the hook, if there is one, and survives it. */
export function emit<Event>(hook: EventHook<Event> | undefined, event: Event): void {
  try {
    const returned: unknown = hook?.(event);
    if (returned instanceof Promise) returned.catch(() => undefined);
  } catch {
    // The hook is the user's to mend; the lock does not depend on it.
  }
}
