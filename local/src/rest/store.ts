import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Dialect } from "../engine/dialect.ts";
import { Engine } from "../engine/engine.ts";
import type { Backend } from "./backend.ts";
import { EmbeddedBackend } from "./embedded-backend.ts";
import { RedisBackend } from "./redis/backend.ts";
import { type RedisProcess, startRedis } from "./redis/process.ts";

/** What an endpoint has after a restart: every write that it acknowledged (`"kept"`), or nothing (`"lost"`). */
export type Memory = "kept" | "lost";

/** The Redis of one endpoint: a backend that can be stopped and started. */
export interface Store {
  readonly backend: Backend;
  readonly redisUrl: string | undefined;
  /** Process id of a server that this process started; undefined for other engines and while it is stopped. */
  readonly pid: number | undefined;
  /** Stops it as a crash does. */
  stop(): Promise<void>;
  start(memory: Memory): Promise<void>;
  /** Stops it for good and deletes its data and files. */
  close(): Promise<void>;
}

/** The embedded engine. */
export function embeddedStore(dialect: Dialect): Store {
  const engine = new Engine({ dialect });
  return {
    backend: new EmbeddedBackend(engine),
    redisUrl: undefined,
    pid: undefined,
    // The endpoint does not listen, so no command reaches the engine.
    stop: async () => undefined,
    async start(memory) {
      if (memory === "lost") engine.flush();
    },
    close: async () => engine.flush(),
  };
}

/** A new `redis-server` process, with its files in a new temporary directory. `program`: its path. */
export async function spawnedStore(dialect: Dialect, program: string): Promise<Store> {
  const directory = await mkdtemp(join(tmpdir(), "redis-rest-local-"));
  const first = await startRedis(program, directory);
  const { port, url } = first;
  let running: RedisProcess | undefined = first;
  const backend = new RedisBackend(url, dialect);
  async function stop(): Promise<void> {
    const stopping = running;
    running = undefined;
    await stopping?.kill();
  }
  return {
    backend,
    redisUrl: url,
    get pid() {
      return running?.pid;
    },
    stop,
    async start(memory) {
      if (running) return;
      if (memory === "lost") {
        await rm(directory, { recursive: true, force: true });
        await mkdir(directory);
      }
      running = await startRedis(program, directory, port);
    },
    async close() {
      await backend.close();
      await stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** A server that was not started here. It is used, but never stopped and never emptied. */
export function externalStore(dialect: Dialect, url: string): Store {
  const backend = new RedisBackend(url, dialect);
  return {
    backend,
    redisUrl: url,
    pid: undefined,
    // Only the endpoint stops listening.
    stop: async () => undefined,
    async start(memory) {
      if (memory === "kept") return;
      throw new TypeError("the data of a Redis given by URL are not ours to delete: it keeps its memory");
    },
    close: () => backend.close(),
  };
}
