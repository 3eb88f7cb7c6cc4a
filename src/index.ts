export {
  type Command,
  type Dialect,
  type Endpoint,
  type HttpEndpointOptions,
  httpEndpoint,
} from "./endpoints/endpoint.ts";
export { type UpstashClient, type UpstashEndpointOptions, upstashEndpoint } from "./endpoints/upstash.ts";
export {
  EndpointError,
  type EndpointErrorKind,
  isRedlockError,
  LockHeldError,
  LockLostError,
  QuorumError,
  RedlockError,
  type RedlockErrorCode,
  type Vote,
} from "./errors.ts";
export type { EventHook, OperationEvent, RedlockEvent } from "./events.ts";
export type { LockJSON } from "./lock/handoff.ts";
export type { Inspection, InspectionVote } from "./lock/inspect.ts";
export type { Lock } from "./lock/lock.ts";
export type { AcquireOptions, LockOptions, WaitUntil } from "./lock/options.ts";
export type { Backoff, BackoffBounds } from "./quorum/backoff.ts";
export { Redlock, type RedlockOptions } from "./redlock.ts";
export { type Runtime, systemRuntime } from "./runtime.ts";
