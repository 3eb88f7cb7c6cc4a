import { type Check, oneOf } from "../../../src/check/check.ts";

/**
 * Which commands a server has. `upstash`: compare-and-set and compare-and-delete (`SET … IFEQ`, `DELEX`), and scripts may
 * begin with Upstash's own flag. `redis-8.4`: these commands, without the flag (Redis 8.4, Valkey 9.2). `redis`: neither.
 */
export type Dialect = "upstash" | "redis-8.4" | "redis";

/** @throws RangeError for another dialect */
export const dialectCheck: Check = oneOf("upstash", "redis-8.4", "redis");
