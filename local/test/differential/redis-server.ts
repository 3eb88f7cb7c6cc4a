import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "redis";
import { freePort } from "../../../test/support/free-port.ts";

/** An answer of Redis: a reply, or the text of its error. */
export type Answer = { readonly reply: unknown } | { readonly error: string };

/** A redis-server that was started for one test file. */
export interface RedisServer {
  /** For example `7.0.15`. */
  readonly version: string;
  /** Executes one command. */
  execute(command: readonly (string | number)[]): Promise<Answer>;
  /** Kills the server and deletes its files. */
  stop(): Promise<void>;
}

/** Starts redis-server on a free port of loopback, without persistence. */
export async function startRedisServer(): Promise<RedisServer> {
  const directory = await mkdtemp(join(tmpdir(), "redis-rest-local-"));
  const port = await freePort();
  const options = { port, bind: "127.0.0.1", save: "", appendonly: "no", dir: directory };
  const words = Object.entries(options).flatMap(([name, value]) => [`--${name}`, String(value)]);
  const child = spawn("redis-server", words, { stdio: "ignore" });
  const client = createClient({ RESP: 2, socket: { host: "127.0.0.1", port, reconnectStrategy: 20 } });
  // Refused connections are expected while the server starts. If it has exited, the client must not retry forever.
  client.on("error", () => child.exitCode !== null && client.destroy());
  try {
    await client.connect();
    const info = String(await client.sendCommand(["INFO", "server"]));
    return {
      version: /redis_version:(\S+)/.exec(info)?.[1] ?? "unknown",
      async execute(command) {
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
