/**
 * Redis over HTTP on your machine, with faults for tests.
 *
 * @module redis-rest-local
 */
export { ReplyError } from "../../lock-server/src/engine/reply-error.ts";
export type { Reply } from "../../lock-server/src/twins/twin.ts";
export { Engine, type EngineOptions, type Push } from "./engine/engine.ts";
export { type FaultKind, type FaultRule, Faults } from "./faults/faults.ts";
export { CommandLog, type LoggedCommand } from "./rest/command-log.ts";
export type { LocalEndpoint } from "./rest/endpoint.ts";
export { type LocalEndpoints, type StartOptions, start } from "./rest/start.ts";
export type { Memory } from "./rest/store.ts";
