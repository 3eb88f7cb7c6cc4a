/**
 * Which commands a server has. `upstash`: compare-and-set and compare-and-delete (`SET … IFEQ`, `DELEX`), and scripts may
 * begin with Upstash's own flag. `redis-8.4`: these commands, without the flag (Redis 8.4, Valkey 9.2). `redis`: neither.
 */
export type Dialect = "upstash" | "redis-8.4" | "redis";

/** @throws TypeError when the dialect is neither a valid one nor undefined */
export function checkDialect(dialect: Dialect | undefined): Dialect | undefined {
  if (dialect === undefined || ["upstash", "redis-8.4", "redis"].includes(dialect)) return dialect;
  throw new TypeError(`dialect must be "upstash", "redis-8.4" or "redis", got ${String(dialect)}`);
}
