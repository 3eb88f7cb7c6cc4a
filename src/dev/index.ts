export {
  Engine,
  type EngineOptions,
  type Push,
  type Reply,
  ReplyError,
  type SubscriptionKind,
} from "../testing/engine.ts";
export {
  type FaultKind,
  type FaultPlan,
  type FaultRule,
  Faults,
  type MessagePlan,
  type StreamPlan,
} from "../testing/faults.ts";
export type { Argument } from "./argument.ts";
export { type Backend, BackendGoneError, type Outcome, type Subscriber } from "./backend.ts";
export { CommandLog, type LoggedCommand } from "./command-log.ts";
export { EmbeddedBackend } from "./embedded-backend.ts";
export type { DevEndpoint } from "./endpoint.ts";
export { type UpstashHandlerOptions, upstashHandler } from "./http/handler.ts";
export { RedisBackend } from "./redis/backend.ts";
export { StatusReply, type WireReply } from "./redis/resp.ts";
export { type DevEndpoints, type StartOptions, startEndpoints } from "./start.ts";
export type { Memory } from "./store.ts";
