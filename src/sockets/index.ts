/**
 * Use your clients of ioredis and node-redis as endpoints.
 *
 * @module redlock-edge/sockets
 */
export { type IoredisClient, ioredisEndpoint } from "./ioredis.ts";
export { type NodeRedisClient, nodeRedisEndpoint } from "./node-redis.ts";
export type { SocketEndpointOptions } from "./send.ts";
