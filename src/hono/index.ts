/**
 * Middleware of Hono that handles a request or a webhook once, and that locks a route.
 *
 * @module redlock-edge/hono
 */
export type { IdempotentRun } from "../http/serve.ts";
export type { FromContext, NoEnvGiven, UnknownEnv } from "./context.ts";
export {
  type IdempotencyVariables,
  type IdempotentOptions,
  type IdempotentWebhookOptions,
  idempotent,
  type LockedRun,
  type WebhookVariables,
} from "./idempotent.ts";
export { type FencedLockRouteOptions, type LockRouteOptions, type LockVariables, lock } from "./lock.ts";
