import { mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startDatabase } from "./database-server.ts";
import { freePort } from "./free-port.ts";
import { askServer, redisServer, startServerWith } from "./redis-servers.ts";
import { until } from "./until.ts";

/** The name of the primary that the sentinel watches. */
export const primaryName = "mymaster";

/** A primary with one replica, and a sentinel that promotes the replica when the primary is down for half a second. */
export interface RedisSentinel {
  /** The sentinel's port. */
  readonly port: number;
  /** Resolves when the replica has all that the primary had when this was called. */
  replicated(): Promise<void>;
  /** Kills the primary, and resolves when the sentinel names the new one. */
  killPrimary(): Promise<void>;
  close(): Promise<void>;
}

/** Starts a primary, its replica and their sentinel. */
export async function startRedisSentinel(): Promise<RedisSentinel> {
  // Otherwise the first synchronisation begins after five seconds.
  const primary = await startServerWith("--repl-diskless-sync-delay 0");
  const replica = await startServerWith(`--replicaof 127.0.0.1 ${primary.port}`);
  const port = await freePort();
  const { server, exited } = await startSentinel(port, primary.port);
  await until(async () => {
    const replicas = JSON.stringify(await askServer(port, "SENTINEL", "REPLICAS", primaryName));
    return replicas.includes('"slave"') && replicas.includes('"master-link-status","ok"');
  }, "the sentinel to know the replica");
  return {
    port,
    async replicated() {
      await until(async () => (await askServer(primary.port, "WAIT", 1, 100)) === 1, "the replica");
    },
    async killPrimary() {
      await primary.kill();
      await until(async () => {
        const address = await askServer(port, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", primaryName);
        return Number((address as string[])[1]) === replica.port;
      }, "the replica to be promoted");
    },
    async close() {
      server.kill("SIGKILL");
      await Promise.all([exited, primary.kill(), replica.kill()]);
    },
  };
}

async function startSentinel(port: number, primary: number) {
  const directory = await mkdtemp(join(tmpdir(), "redlock-edge-sentinel-"));
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
  return startDatabase(redisServer!, [file, "--sentinel"], {}, () => askServer(port, "PING"));
}
