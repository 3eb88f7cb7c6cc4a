/** @module redlock-edge/http */
export type { CanonicalOptions } from "../idempotency/index.ts";
export type { Delivery } from "./delivery.ts";
export { type Fingerprint, jsonFingerprint } from "./fingerprint.ts";
export type {
  HttpEvent,
  HttpOptions,
  HttpRules,
  Locked,
  PerRequest,
  RouteOptions,
  WebhookOptions,
} from "./options.ts";
export type { ProblemCode } from "./problem.ts";
export { withIdempotency } from "./with-idempotency.ts";
