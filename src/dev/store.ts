import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Engine } from "../testing/engine.ts";
import type { Backend } from "./backend.ts";
import { EmbeddedBackend } from "./embedded-backend.ts";
import { RedisBackend } from "./redis/backend.ts";
import { forget, startRedis } from "./redis/process.ts";

/** What an endpoint remembers across a restart: all that it acknowledged, or nothing. */
export type Memory = "kept" | "lost";

/** The Redis of one endpoint, with its life. */
export interface Store {
  readonly backend: Backend;
  readonly redisUrl: string | undefined;
  /** Process id of a server that was started here; undefined otherwise and while it is stopped. */
  readonly pid: number | undefined;
  /** ms by which its clock is ahead. Only the embedded engine's can be set. */
  clockOffset: number;
  /** Crashes it. */
  stop(): Promise<void>;
  start(memory: Memory): Promise<void>;
  /** Ends it for good and leaves nothing behind. */
  close(): Promise<void>;
}

/** The engine in this process. `luaTimeLimit`: how long a script may run, in ms. */
export function embeddedStore(luaTimeLimit: number): Store {
  let offset = 0;
  const engine = new Engine({ now: () => Date.now() + offset, luaTimeLimit });
  return {
    backend: new EmbeddedBackend(engine),
    redisUrl: undefined,
    pid: undefined,
    get clockOffset() {
      return offset;
    },
    set clockOffset(ms: number) {
      if (!Number.isFinite(ms)) throw new RangeError(`clockOffset is a number of ms, not ${ms}`);
      offset = ms;
    },
    async stop() {
      // Between stop and start nobody asks the engine: its endpoint does not listen.
    },
    async start(memory) {
      if (memory === "lost") engine.flush();
    },
    async close() {
      engine.flush();
    },
  };
}

/** A `redis-server` of our own, started from `program`. */
export async function spawnedStore(program: string): Promise<Store> {
  const directory = await mkdtemp(join(tmpdir(), "redlock-edge-"));
  const first = await startRedis(program, directory);
  const { port, url } = first;
  let running: typeof first | undefined = first;
  const backend = new RedisBackend(url);
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
    get clockOffset() {
      return 0;
    },
    set clockOffset(_ms: number) {
      throw noClock();
    },
    stop,
    async start(memory) {
      if (running) return;
      if (memory === "lost") await forget(directory);
      running = await startRedis(program, directory, port);
    },
    async close() {
      await backend.close();
      await stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** A server that somebody else runs: it is used, never stopped and never emptied. */
export function externalStore(url: string): Store {
  const backend = new RedisBackend(url);
  return {
    backend,
    redisUrl: url,
    pid: undefined,
    get clockOffset() {
      return 0;
    },
    set clockOffset(_ms: number) {
      throw noClock();
    },
    async stop() {
      // Only its endpoint stops listening.
    },
    async start(memory) {
      if (memory === "lost") {
        throw new TypeError(
          'memory: "lost" is not for a Redis given by URL: its data are not ours to delete',
        );
      }
    },
    close: () => backend.close(),
  };
}

function noClock(): TypeError {
  return new TypeError(
    "clockOffset can be set on the embedded engine only: redis-server takes the machine's clock",
  );
}
