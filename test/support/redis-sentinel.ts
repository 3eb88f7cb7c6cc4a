import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "redis";
import { type RedisProcess, startRedis } from "../../local/src/rest/redis/process.ts";
import { freePort } from "./free-port.ts";
import { until } from "./until.ts";

/** The name of the primary that the sentinel watches. */
export const primaryName = "mymaster";

/** A primary with one replica, and a sentinel that promotes the replica when the primary is down for half a second. */
export interface RedisSentinel {
  /** The sentinel's port. */
  readonly port: number;
  /** Resolves when the replica has all that the primary had when this was called. */
  replicated(): Promise<void>;
  /** Kills the primary, and resolves with the port of the new one when the sentinel names it. */
  killPrimary(): Promise<number>;
  close(): Promise<void>;
}

/** Starts a primary, its replica and their sentinel. `program`: the path of redis-server. */
export async function startRedisSentinel(program: string): Promise<RedisSentinel> {
  const directory = await mkdtemp(join(tmpdir(), "redlock-edge-sentinel-"));
  const servers: RedisProcess[] = [];
  let sentinel: ChildProcess | undefined;
  const close = async () => {
    if (sentinel?.exitCode === null && sentinel.signalCode === null) {
      const exited = once(sentinel, "exit");
      sentinel.kill("SIGKILL");
      await exited;
    }
    for (const server of servers) await server.kill();
    await rm(directory, { recursive: true, force: true });
  };
  try {
    for (const name of ["primary", "replica"]) {
      const own = join(directory, name);
      await mkdir(own);
      servers.push(await startRedis(program, own));
    }
    const [primary, replica] = servers as [RedisProcess, RedisProcess];
    // Otherwise the first synchronisation begins after five seconds.
    await ask(primary.port, ["CONFIG", "SET", "repl-diskless-sync-delay", "0"]);
    await ask(replica.port, ["REPLICAOF", "127.0.0.1", String(primary.port)]);
    const port = await freePort();
    sentinel = await startSentinel(program, directory, { port, primary: primary.port });
    await until(async () => {
      const replicas = JSON.stringify(await ask(port, ["SENTINEL", "REPLICAS", primaryName]));
      return replicas.includes('"slave"') && replicas.includes('"master-link-status","ok"');
    }, "the sentinel to know the replica");
    return {
      port,
      async replicated() {
        await until(async () => (await ask(primary.port, ["WAIT", "1", "100"])) === 1, "the replica");
      },
      async killPrimary() {
        await primary.kill();
        const found = async () => {
          const address = await ask(port, ["SENTINEL", "GET-MASTER-ADDR-BY-NAME", primaryName]);
          return Number((address as string[])[1]);
        };
        await until(async () => (await found()) === replica.port, "the replica to be promoted");
        return replica.port;
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

async function startSentinel(
  program: string,
  directory: string,
  { port, primary }: { readonly port: number; readonly primary: number },
): Promise<ChildProcess> {
  const file = join(directory, "sentinel.conf");
  const settings = [
    `port ${port}`,
    "bind 127.0.0.1",
    `dir ${directory}`,
    `sentinel monitor ${primaryName} 127.0.0.1 ${primary} 1`,
    `sentinel down-after-milliseconds ${primaryName} 500`,
    `sentinel failover-timeout ${primaryName} 3000`,
  ];
  // The sentinel writes there what it learns.
  await writeFile(file, `${settings.join("\n")}\n`);
  const child = spawn(program, [file, "--sentinel"], { stdio: "ignore" });
  await until(async () => {
    if (child.exitCode !== null) throw new Error(`the sentinel has exited with ${child.exitCode}`);
    return ask(port, ["PING"]).then(
      () => true,
      () => false,
    );
  }, "the sentinel to listen");
  return child;
}

/** The reply to one command, on a connection of its own. */
async function ask(port: number, command: string[]): Promise<unknown> {
  const client = createClient({ RESP: 2, socket: { host: "127.0.0.1", port, reconnectStrategy: false } });
  client.on("error", () => undefined);
  try {
    await client.connect();
    return await client.sendCommand(command);
  } finally {
    if (client.isOpen) client.destroy();
  }
}
