export { type Reply, ReplyError } from "./commands/reply.ts";
export { Engine, type EngineOptions } from "./engine.ts";
export { type FaultKind, type FaultPlan, type FaultRule, Faults } from "./faults.ts";
export {
  type LogEntry,
  type MemoryEndpoint,
  type MemoryEndpointOptions,
  memoryEndpoint,
} from "./memory-endpoint.ts";
