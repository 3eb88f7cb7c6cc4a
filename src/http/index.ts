/** @module redlock-edge/http */
export type { CanonicalOptions } from "../idempotency/index.ts";
export type { Delivery } from "./delivery.ts";
export { jsonFingerprint } from "./json-fingerprint.ts";
export type {
  Fingerprint,
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
