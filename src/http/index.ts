/**
 * Handle a request or a webhook once, in every framework with `Request` and `Response`.
 *
 * @module redlock-edge/http
 */
export type { CanonicalOptions } from "../idempotency/index.ts";
export { type Fingerprint, jsonFingerprint } from "./fingerprint.ts";
export type {
  Delivery,
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
