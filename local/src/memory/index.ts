/** @module redis-rest-local/memory */
export { type Reply, ReplyError } from "../engine/commands/reply.ts";
export { Engine, type EngineOptions, type Push, type SubscriptionKind } from "../engine/engine.ts";
export {
  type FaultKind,
  type FaultPlan,
  type FaultRule,
  Faults,
  type MessagePlan,
  type StreamPlan,
} from "../faults/faults.ts";
export {
  type LogEntry,
  type MemoryEndpoint,
  type MemoryEndpointOptions,
  memoryEndpoint,
} from "./memory-endpoint.ts";
export { VirtualTime, type VirtualTimeOptions } from "./virtual-time.ts";
