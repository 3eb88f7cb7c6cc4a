import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient, createCluster } from "redis";
import { type RawServer, startRawServer } from "./raw-server.ts";
import { until } from "./until.ts";

const slots = 16_384;

/** Three Redis processes that share the slots, with one HTTP endpoint in front that follows redirections. */
export interface RedisCluster {
  readonly url: string;
  readonly token: string;
  /** Every key of the cluster, with the slot that it is in. */
  keys(): Promise<{ key: string; slot: number; port: number }[]>;
  /** A command to the node that has its key. */
  execute(command: readonly string[]): Promise<unknown>;
  /** The commands that arrived. */
  readonly commands: readonly (readonly string[])[];
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** Starts the cluster from `program`, a redis-server. */
export async function startRedisCluster(program: string): Promise<RedisCluster> {
  const directory = await mkdtemp(join(tmpdir(), "redlock-edge-cluster-"));
  const processes: ChildProcess[] = [];
  const clients: { destroy(): void }[] = [];
  let server: RawServer | undefined;

  async function close(): Promise<void> {
    await server?.close();
    for (const client of clients) client.destroy();
    for (const child of processes) {
      const exited = once(child, "exit");
      if (child.exitCode === null && child.signalCode === null && child.kill("SIGKILL")) await exited;
    }
    await rm(directory, { recursive: true, force: true });
  }

  async function startNode(): Promise<{ port: number; client: NodeClient }> {
    const port = await freePort();
    const settings = {
      port,
      bind: "127.0.0.1",
      dir: directory,
      save: '""',
      appendonly: "no",
      "cluster-enabled": "yes",
      "cluster-config-file": `nodes-${port}.conf`,
      // The default, port + 10 000, may not exist.
      "cluster-port": await freePort(),
      "cluster-node-timeout": 5_000,
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
    const child = spawn(program, flags, { stdio: "ignore" });
    processes.push(child);
    const client = nodeClient(port);
    // It may not listen yet; what matters is whether it answers in the end.
    client.on("error", () => undefined);
    clients.push(client);
    await client.connect();
    return { port, client };
  }

  try {
    const nodes = await Promise.all([startNode(), startNode(), startNode()]);
    for (const [index, { client }] of nodes.entries()) {
      const [from, to] = [index, index + 1].map((part) => Math.floor((slots * part) / nodes.length));
      await client.sendCommand(["CLUSTER", "ADDSLOTSRANGE", String(from), String(to! - 1)]);
    }
    const [first] = nodes;
    for (const { port } of nodes.slice(1)) {
      const bus = await busPort(nodes.find((node) => node.port === port)!.client);
      await first!.client.sendCommand(["CLUSTER", "MEET", "127.0.0.1", String(port), bus]);
    }
    for (const { client } of nodes) {
      await until(async () => {
        const state = String(await client.sendCommand(["CLUSTER", "INFO"]));
        return state.includes("cluster_state:ok") && state.includes("cluster_known_nodes:3");
      }, "the cluster to form");
    }

    const cluster = createCluster({
      rootNodes: nodes.map(({ port }) => ({ url: `redis://127.0.0.1:${port}` })),
    });
    await cluster.connect();
    clients.push(cluster);
    const execute = (command: readonly string[]) =>
      cluster.sendCommand(keyOf(command), false, [...command]) as Promise<unknown>;
    const token = "cluster-token";
    const opened = await startRawServer(async ({ command }) => {
      try {
        return { body: JSON.stringify({ result: await execute(command) }) };
      } catch (error) {
        return { status: 400, body: JSON.stringify({ error: (error as Error).message }) };
      }
    });
    server = opened;
    return {
      url: opened.url,
      token,
      execute,
      get commands() {
        return opened.requests.map(({ command }) => command);
      },
      async keys() {
        const found = await Promise.all(
          nodes.map(async ({ port, client }) => {
            const keys = (await client.sendCommand(["KEYS", "*"])) as string[];
            return Promise.all(
              keys.map(async (key) => ({
                key,
                port,
                slot: (await client.sendCommand(["CLUSTER", "KEYSLOT", key])) as number,
              })),
            );
          }),
        );
        return found.flat();
      },
      async flush() {
        for (const { client } of nodes) await client.sendCommand(["FLUSHALL"]);
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** The key that decides where a command goes: the first one of a script, else the first argument. */
function keyOf([name = "", ...rest]: readonly string[]): string | undefined {
  return name.startsWith("EVAL") ? rest[2] : rest[0];
}

type NodeClient = ReturnType<typeof nodeClient>;

function nodeClient(port: number) {
  return createClient({ socket: { host: "127.0.0.1", port, reconnectStrategy: 20 } });
}

async function busPort(client: NodeClient): Promise<string> {
  const nodes = String(await client.sendCommand(["CLUSTER", "NODES"]));
  return /@(\d+)/.exec(nodes)![1]!;
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  await once(server, "close");
  return port;
}
