/**
 * A server of locks on Durable Objects, which speaks the protocol of endpoints.
 *
 * @module redlock-edge-server
 */
export { type LockServerAppOptions, lockServerApp } from "./app.ts";
export { durableEndpoint } from "./endpoint.ts";
export { LockServer, type LockServerState } from "./lock-server.ts";
export type { LockServerNamespace, LockServerOptions, LockServerStub } from "./object.ts";
