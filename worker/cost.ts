import type { HttpEvent } from "../src/http/index.ts";
import type { RedlockEvent } from "../src/index.ts";

/**
 * Adds up what one delivery costs in Redis, from the library's own events. Requests that were still under way
 * when the delivery was answered count, the commands inside their scripts do not.
 *
 * @example
 * const cost = new Cost();
 * await redlock.using("invoice:42", { onEvent: cost.ofLock }, work);
 * cost.requests; // 6 with three endpoints: a take and a release each
 */
export class Cost {
  /** HTTP requests. */
  requests = 0;
  /** Commands, as Upstash bills them. */
  commands = 0;

  /** For `onEvent` of a lock. */
  readonly ofLock = (event: RedlockEvent): void => {
    if (!("requests" in event)) return;
    // The rounds that found the lock held are part of what `acquired` or the last `contended` tells.
    if (event.type !== "contended" || event.retryIn === undefined) this.#add(event);
  };

  /** For `onEvent` of an idempotent run, which tells the whole of it at its end. */
  readonly ofRun = (event: HttpEvent): void => {
    if ("requests" in event) this.#add(event);
  };

  #add({ requests, commands }: { readonly requests: number; readonly commands: number }): void {
    this.requests += requests;
    this.commands += commands;
  }
}
