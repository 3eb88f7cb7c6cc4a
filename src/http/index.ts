/** @module redlock-edge/http */
export type { Delivery, PerRequest } from "./delivery.ts";
export type { Fingerprint, HttpEvent, HttpOptions, HttpRules, Locked, WebhookOptions } from "./options.ts";
export type { ProblemCode } from "./problem.ts";
export { withIdempotency } from "./with-idempotency.ts";
