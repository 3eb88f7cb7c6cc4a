import type { HttpEvent } from "../src/http/index.ts";
import type { RedlockEvent } from "../src/index.ts";

/**
 * Adds up what one delivery costs in Redis, from the library's events. Requests that had no response yet when the
 * delivery was answered count; the commands inside their scripts do not.
 *
 * @example
 * const cost = new Cost();
 * await redlock.using("invoice:42", { onEvent: cost.ofLock }, work);
 * cost.requests; // 6 with three endpoints: each acquires and releases
 */
export class Cost {
  /** HTTP requests. */
  requests = 0;
  /** Commands that Upstash bills. */
  commands = 0;

  /** Pass it as `onEvent` of a lock. */
  readonly ofLock = (event: RedlockEvent): void => {
    // The event that ends the call includes the rounds that found the lock held.
    if ("requests" in event && event.type !== "contended") this.#add(event);
  };

  /** Pass it as `onEvent` of an idempotent run, whose event includes the cost of the whole run. */
  readonly ofRun = (event: HttpEvent): void => {
    if ("requests" in event) this.#add(event);
  };

  #add({ requests, commands }: { readonly requests: number; readonly commands: number }): void {
    this.requests += requests;
    this.commands += commands;
  }
}
