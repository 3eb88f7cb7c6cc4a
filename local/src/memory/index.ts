/**
 * Endpoints in the memory of your test, without Redis and without a server.
 *
 * @module redis-rest-local/memory
 */
export { ReplyError } from "../../../lock-server/src/engine/reply-error.ts";
export type { Reply } from "../../../lock-server/src/twins/twin.ts";
export { Engine, type EngineOptions, type Push } from "../engine/engine.ts";
export { type FaultKind, type FaultRule, Faults } from "../faults/faults.ts";
export {
  type LogEntry,
  type MemoryEndpoint,
  type MemoryEndpointOptions,
  memoryEndpoint,
} from "./memory-endpoint.ts";
export { type VirtualRedlock, type VirtualRedlockOptions, virtualRedlock } from "./virtual-redlock.ts";
export { VirtualTime, type VirtualTimeOptions } from "./virtual-time.ts";
