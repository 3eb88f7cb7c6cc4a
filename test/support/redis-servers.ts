import process from "node:process";
import { findRedisServer } from "../../src/dev/redis/process.ts";

/** The path of `redis-server`; undefined, said loudly, where it is missing. In CI it must not be missing. */
export const redisServer: string | undefined = await findRedisServer();

if (redisServer === undefined) {
  if (process.env.CI === "true") throw new Error("redis-server is not on PATH, and in CI it has to be");
  console.warn("!!! redis-server is not on PATH: only the embedded engine is tested !!!");
}

/** The engines that can be tested here. */
export const engines: readonly ("redis" | "embedded")[] = redisServer ? ["redis", "embedded"] : ["embedded"];
