import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "redis";

/** What Redis answered: a reply, or the text of its error. */
export type Answer = { readonly reply: unknown } | { readonly error: string };

/** A real redis-server of its own, started for one test file. */
export interface RedisServer {
  /** E.g. `7.0.15`. */
  readonly version: string;
  ask(command: readonly (string | number)[]): Promise<Answer>;
  stop(): Promise<void>;
}

/**
 * Whether redis-server is there. Without it the differential tests cannot compare anything: they say so, and
 * fail where that must not pass unnoticed.
 */
export function redisServerIsThere(untested: string): boolean {
  if (spawnSync("redis-server", ["--version"]).status === 0) return true;
  const message = `redis-server is not on PATH: NOT TESTED: ${untested}`;
  if (process.env.CI === "true") throw new Error(message);
  console.warn(message);
  return false;
}

export async function startRedisServer(): Promise<RedisServer> {
  const directory = await mkdtemp(join(tmpdir(), "redlock-edge-"));
  const port = await freePort();
  const options = { port, bind: "127.0.0.1", save: "", appendonly: "no", dir: directory };
  const words = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const child = spawn("redis-server", words, { stdio: "ignore" });
  const client = createClient({ RESP: 2, socket: { host: "127.0.0.1", port, reconnectStrategy: 20 } });
  // While the server starts, refused connections are expected; a server that ends is not.
  client.on("error", () => child.exitCode !== null && client.destroy());
  try {
    await client.connect();
    const info = String(await client.sendCommand(["INFO", "server"]));
    return {
      version: /redis_version:(\S+)/.exec(info)?.[1] ?? "unknown",
      async ask(command) {
        try {
          return { reply: await client.sendCommand(command.map(String)) };
        } catch (error) {
          return { error: (error as Error).message };
        }
      },
      async stop() {
        client.destroy();
        await end(child, directory);
      },
    };
  } catch (error) {
    await end(child, directory);
    throw error;
  }
}

async function end(child: ChildProcess, directory: string): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) {
    child.kill("SIGKILL");
    await once(child, "exit");
  }
  await rm(directory, { recursive: true, force: true });
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}
