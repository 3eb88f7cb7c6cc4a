import { idempotencyRows } from "./idempotency.mjs";
import { redisSemaphoreRows } from "./redis-semaphore.mjs";
import { redlockRows } from "./redlock.mjs";
import { redlockUniversalRows } from "./redlock-universal.mjs";
import { upstashLockRows } from "./upstash-lock.mjs";

/**
 * The rows of docs/choosing.md, each with two programs that show it.
 *
 * @type {{
 *   package: string,
 *   peer: string,
 *   ours: string,
 *   observePeer: (world: import("./world.mjs").World) => Promise<import("./table.mjs").Observation>,
 *   observeOurs: (world: import("./world.mjs").World) => Promise<import("./table.mjs").Observation>,
 * }[]}
 */
export const rows = [
  ...redlockRows,
  ...redisSemaphoreRows,
  ...redlockUniversalRows,
  ...upstashLockRows,
  ...idempotencyRows,
];
