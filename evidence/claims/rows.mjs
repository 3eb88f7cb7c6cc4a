import { idempotencyRows } from "./idempotency.mjs";
import { redisSemaphoreRows } from "./redis-semaphore.mjs";
import { redlockRows } from "./redlock.mjs";
import { redlockUniversalRows } from "./redlock-universal.mjs";
import { upstashLockRows } from "./upstash-lock.mjs";

/**
 * The rows of docs/choosing.md, each with a program that shows it.
 *
 * @type {{
 *   package: string,
 *   peer: string,
 *   ours: string,
 *   observe: (world: import("./world.mjs").World) => Promise<{ text: string, holds: boolean }>,
 * }[]}
 */
export const rows = Object.entries({
  ...redlockRows,
  ...redisSemaphoreRows,
  ...redlockUniversalRows,
  ...upstashLockRows,
  ...idempotencyRows,
}).flatMap(([name, ofPackage]) => ofPackage.map((row) => ({ package: name, ...row })));
