// What is used of the other packages. Only this file imports them.
export { IdempotencyConfig, makeIdempotent } from "@aws-lambda-powertools/idempotency";
export { CachePersistenceLayer } from "@aws-lambda-powertools/idempotency/cache";
export { Lock as UpstashLock } from "@upstash/lock";
export { Redis as UpstashRedis } from "@upstash/redis";
export { Redis } from "ioredis";
export { createClient } from "redis";
export { Mutex, RedlockMultiSemaphore, RedlockMutex, RedlockSemaphore } from "redis-semaphore";
export { default as Redlock } from "redlock";
export { createLock, createRedlock, IoredisAdapter } from "redlock-universal";
