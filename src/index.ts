/**
 * Locks on a quorum of Redis endpoints, with fencing tokens.
 *
 * @module redlock-edge
 */
export type {
  Command,
  Dialect,
  Endpoint,
} from "./endpoints/endpoint.ts";
export { endpointsFromEnv } from "./endpoints/env.ts";
export { type HttpEndpointOptions, httpEndpoint } from "./endpoints/http.ts";
export { type UpstashClient, type UpstashEndpointOptions, upstashEndpoint } from "./endpoints/upstash.ts";
export {
  EndpointError,
  type EndpointErrorKind,
  isRedlockError,
  LockHeldError,
  type LockHolder,
  LockLostError,
  QuorumError,
  RedlockError,
  type RedlockErrorCode,
  type Vote,
} from "./errors/errors.ts";
export type { LockClient } from "./lock/client.ts";
export type { EventHook, RedlockEvent } from "./lock/events.ts";
export type { FencedLock, Lock } from "./lock/lock.ts";
export type { AcquireOptions, Backoff, BackoffBounds, LockOptions, UsingOptions } from "./lock/options.ts";
export type { WakeUp, WakeUpListener, WakeUpPause } from "./lock/wake-up.ts";
export { type FencedOptions, Redlock, type RedlockOptions, type Routine } from "./redlock.ts";
export type { WaitUntil } from "./runtime/runtime.ts";
export { type Runtime, systemRuntime } from "./runtime/runtime.ts";
