import type { HttpEvent } from "../src/http/index.ts";

/**
 * What one delivery costs in Redis, from the library's events. Requests that had no response yet when the delivery was
 * answered count; the commands inside their scripts do not.
 *
 * @example
 * const cost = new Cost();
 * app.post("/webhooks", idempotent({ redlock, provider, onEvent: cost.add }), handle);
 * cost.requests; // 6 with three endpoints: each begins and ends
 */
export class Cost {
  /** HTTP requests. */
  requests = 0;
  /** Commands that Upstash bills. */
  commands = 0;

  /** Adds what an event reports; the last one of a run includes the cost of the whole run. */
  readonly add = (event: HttpEvent): void => {
    if (!("requests" in event)) return;
    this.requests += event.requests;
    this.commands += event.commands;
  };
}
