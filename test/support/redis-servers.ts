import process from "node:process";
import { findRedisServer } from "../../src/dev/redis/process.ts";
import { fewSets } from "./few-sets.ts";

/** The path of `redis-server`; undefined, with a warning, if it is missing. In CI that is an error. */
export const redisServer: string | undefined = fewSets ? undefined : await findRedisServer();

if (redisServer === undefined && !fewSets) {
  if (process.env.CI === "true") throw new Error("redis-server is not on PATH, and CI requires it");
  console.warn("!!! redis-server is not on PATH: only the embedded engine is tested !!!");
}

/** The engines that can be tested on this machine. */
export const engines: readonly ("redis" | "embedded")[] = redisServer ? ["redis", "embedded"] : ["embedded"];
