import { chmod, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LocalEndpoints, start } from "../../local/src/index.ts";
import { RedisConnection } from "../../local/src/rest/redis/connection.ts";
import { type RedisProcess, startRedis } from "../../local/src/rest/redis/process.ts";
import type { Dialect } from "../../src/index.ts";
import { redisServer, requireInCi } from "./programs.ts";

export { redisServer };

requireInCi(redisServer, "redis-server");

/** The engines that tests run on: real servers only where there is a redis-server. */
export const engines: readonly ("redis" | "embedded")[] = redisServer ? ["redis", "embedded"] : ["embedded"];

/** For what is about the client rather than an engine: the real one if it is there. */
export const bestEngine: "redis" | "embedded" = engines[0]!;

/** Whether this machine has what a set of endpoints runs on. Lists of sets leave out all others. */
export function canRun({ engine }: { readonly engine: string }): boolean {
  return engine !== "redis" || redisServer !== undefined;
}

/** URLs of servers that this worker has started and that no test uses. They end with the worker. */
const idle: string[] = [];

/**
 * Endpoints in front of real servers that the tests of a worker share, one after another: a server per file would cost
 * more than many a file's tests. Each opening gets empty servers and new endpoints, so that requests of earlier tests
 * no longer arrive. Tests that kill a server use `start`.
 */
export async function openRealEndpoints(count: number, dialect?: Dialect): Promise<LocalEndpoints> {
  const urls = await Promise.all(Array.from({ length: count }, () => idle.pop() ?? startServer()));
  const local = await start({ redis: urls, ...(dialect && { dialect }) });
  for (const command of [["FLUSHALL"], ["SCRIPT", "FLUSH"]]) {
    await Promise.all(local.endpoints.map((endpoint) => endpoint.execute(command)));
  }
  const close = async () => {
    await local.close();
    idle.push(...urls.splice(0));
  };
  return { ...local, close, [Symbol.asyncDispose]: close };
}

/** The URL of a new server. It ends with the worker. */
export async function startServer(): Promise<string> {
  return (await startServerWith()).url;
}

/** A new server with more flags on its command line. It ends with the worker, unless it is killed before. */
export async function startServerWith(...flags: readonly string[]): Promise<RedisProcess> {
  const directory = await mkdtemp(join(tmpdir(), "redis-rest-local-"));
  const program = join(directory, "redis-server.sh");
  await writeFile(program, `#!/bin/sh\nexec "${redisServer}" "$@" ${flags.join(" ")}\n`);
  await chmod(program, 0o755);
  return startRedis(program, directory);
}

/** The reply to one command, on a connection of its own. */
export async function askServer(port: number, ...command: readonly (string | number)[]): Promise<unknown> {
  const connection = await RedisConnection.open(`redis://127.0.0.1:${port}`);
  const [reply] = await connection.send([command.map(String)]).finally(() => connection.close());
  if (reply instanceof Error) throw reply;
  return textsIn(reply);
}

function textsIn(reply: unknown): unknown {
  if (Array.isArray(reply)) return reply.map(textsIn);
  return reply instanceof Uint8Array ? String(reply) : reply;
}
