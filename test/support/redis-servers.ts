import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { type DevEndpoints, startEndpoints } from "../../src/dev/index.ts";
import { findRedisServer, startRedis } from "../../src/dev/redis/process.ts";
import type { Dialect } from "../../src/endpoints/endpoint.ts";

// With mutants the same tests run thousands of times, on embedded engines alone.
const isMutationRun = process.env.SETS === "few";

/** The path of `redis-server`; undefined, with a warning, if it is missing. In CI that is an error. */
export const redisServer: string | undefined = isMutationRun ? undefined : await findRedisServer();

if (redisServer === undefined && !isMutationRun) {
  if (process.env.CI === "true") throw new Error("redis-server is not on PATH, and CI requires it");
  console.warn("!!! redis-server is not on PATH: only the embedded engine is tested !!!");
}

/** The engines that can be tested on this machine. */
export const engines: readonly ("redis" | "embedded")[] = redisServer ? ["redis", "embedded"] : ["embedded"];

/** URLs of servers that this worker has started and that no test uses. They end with the worker. */
const idle: string[] = [];

/**
 * Endpoints in front of real servers that the tests of a worker share, one after another: a server per file would cost
 * more than many a file's tests. Each opening gets empty servers and new endpoints, so that requests of earlier tests
 * no longer arrive. Tests that kill a server use `startEndpoints`.
 */
export async function openRealEndpoints(count: number, dialect?: Dialect): Promise<DevEndpoints> {
  const urls = await Promise.all(Array.from({ length: count }, () => idle.pop() ?? startServer()));
  const local = await startEndpoints({ redis: urls, ...(dialect && { dialect }) });
  for (const command of [["FLUSHALL"], ["SCRIPT", "FLUSH"]]) {
    await Promise.all(local.endpoints.map((endpoint) => endpoint.execute(command)));
  }
  const close = async () => {
    await local.close();
    idle.push(...urls.splice(0));
  };
  return { ...local, close, [Symbol.asyncDispose]: close };
}

async function startServer(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), "redlock-edge-"));
  const { url } = await startRedis(redisServer!, directory);
  return url;
}
