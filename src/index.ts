export type { Backoff, BackoffBounds } from "./backoff.ts";
export {
  type Command,
  type Dialect,
  type Endpoint,
  type HttpEndpointOptions,
  httpEndpoint,
} from "./endpoint.ts";
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
export type { LockJSON } from "./handoff.ts";
export type { Inspection, InspectionVote } from "./inspect.ts";
export type { Lock } from "./lock.ts";
export type { AcquireOptions, LockOptions, WaitUntil } from "./options.ts";
export { Redlock, type RedlockOptions } from "./redlock.ts";
export { type Runtime, systemRuntime } from "./runtime.ts";
export { type UpstashClient, type UpstashEndpointOptions, upstashEndpoint } from "./upstash.ts";
