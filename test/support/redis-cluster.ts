import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "redis";
import { slotOf } from "./cluster-slot.ts";
import { freePort } from "./free-port.ts";
import { until } from "./until.ts";

const slots = 16_384;

/** A Redis Cluster of three processes. */
export interface RedisCluster {
  /** The ports of its nodes. */
  readonly ports: readonly number[];
  /**
   * Moves a key's slot to the next node, with all its keys, while it is used.
   *
   * @param during called while both nodes have a part of the slot. Default: nothing
   */
  moveSlotOf(key: string, during?: () => Promise<unknown>): Promise<void>;
  flush(): Promise<void>;
  close(): Promise<void>;
}

/** Starts a cluster of three nodes. `program`: the path of redis-server. */
export async function startRedisCluster(program: string): Promise<RedisCluster> {
  const started = new Started(await mkdtemp(join(tmpdir(), "redlock-edge-cluster-")));
  try {
    const nodes = await Promise.all(Array.from({ length: 3 }, () => startNode(program, started)));
    await formCluster(nodes);
    /** Of slots that were moved: the node's index. */
    const owners = new Map<number, number>();
    return {
      ports: nodes.map(({ port }) => port),
      async moveSlotOf(key, during = () => Promise.resolve()) {
        const slot = Number(await nodes[0]!.client.sendCommand(["CLUSTER", "KEYSLOT", key]));
        if (slot !== slotOf(key)) throw new Error(`${key} is in slot ${slot}, not ${slotOf(key)}`);
        const from = owners.get(slot) ?? Math.floor((slot * nodes.length) / slots);
        const to = (from + 1) % nodes.length;
        owners.set(slot, to);
        await moveSlot(slot, nodes[from]!, nodes[to]!, during);
      },
      async flush() {
        for (const { client } of nodes) await client.sendCommand(["FLUSHALL"]);
      },
      close: () => started.close(),
    };
  } catch (error) {
    await started.close();
    throw error;
  }
}

/** Everything that was started so far and has to be closed, even if the cluster does not form. */
class Started {
  readonly directory: string;
  readonly processes: ChildProcess[] = [];
  readonly clients: { destroy(): void }[] = [];

  constructor(directory: string) {
    this.directory = directory;
  }

  async close(): Promise<void> {
    for (const client of this.clients) client.destroy();
    for (const child of this.processes) {
      const exited = once(child, "exit");
      if (child.exitCode === null && child.signalCode === null && child.kill("SIGKILL")) await exited;
    }
    await rm(this.directory, { recursive: true, force: true });
  }
}

interface Node {
  readonly port: number;
  readonly client: NodeClient;
}

/** A node; at other ports where another program has taken one of them meanwhile. */
async function startNode(program: string, { directory, processes, clients }: Started): Promise<Node> {
  for (;;) {
    const port = await freePort();
    const settings = {
      port,
      bind: "127.0.0.1",
      dir: directory,
      save: '""',
      appendonly: "no",
      "cluster-enabled": "yes",
      "cluster-config-file": `nodes-${port}.conf`,
      // The default, port + 10 000, may be above the highest port.
      "cluster-port": await freePort(),
      "cluster-node-timeout": 5_000,
    };
    const flags = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, String(value)]);
    const child = spawn(program, flags, { stdio: "ignore" });
    processes.push(child);
    const client = nodeClient(port);
    // Connecting fails until the server listens; the client retries.
    client.on("error", () => undefined);
    clients.push(client);
    const ended = once(child, "exit").then(() => false);
    const connected = client.connect().then(
      () => true,
      () => false,
    );
    if (await Promise.race([connected, ended])) return { port, client };
    clients.splice(clients.indexOf(client), 1);
    client.destroy();
  }
}

/** Distributes the slots, connects the nodes with each other, and waits until all agree. */
async function formCluster(nodes: readonly Node[]): Promise<void> {
  for (const [index, { client }] of nodes.entries()) {
    const [from, to] = [index, index + 1].map((part) => Math.ceil((slots * part) / nodes.length));
    await client.sendCommand(["CLUSTER", "ADDSLOTSRANGE", String(from), String(to! - 1)]);
  }
  const [first, ...others] = nodes;
  for (const { port, client } of others) {
    const bus = await busPort(client);
    await first!.client.sendCommand(["CLUSTER", "MEET", "127.0.0.1", String(port), bus]);
  }
  for (const { client } of nodes) {
    await until(async () => {
      const state = String(await client.sendCommand(["CLUSTER", "INFO"]));
      return state.includes("cluster_state:ok") && state.includes("cluster_known_nodes:3");
    }, "the cluster to form");
  }
}

async function moveSlot(slot: number, from: Node, to: Node, during: () => Promise<unknown>): Promise<void> {
  const idOf = async ({ client }: Node) => String(await client.sendCommand(["CLUSTER", "MYID"]));
  const [source, target] = [await idOf(from), await idOf(to)];
  const setSlot = ({ client }: Node, ...how: string[]) =>
    client.sendCommand(["CLUSTER", "SETSLOT", String(slot), ...how]);
  await setSlot(to, "IMPORTING", source);
  await setSlot(from, "MIGRATING", target);
  await during();
  for (;;) {
    const list = ["CLUSTER", "GETKEYSINSLOT", String(slot), "100"];
    const keys = (await from.client.sendCommand(list)) as string[];
    if (keys.length === 0) break;
    const port = String(to.port);
    await from.client.sendCommand(["MIGRATE", "127.0.0.1", port, "", "0", "5000", "KEYS", ...keys]);
    await during();
  }
  await setSlot(to, "NODE", target);
  await setSlot(from, "NODE", target);
}

type NodeClient = ReturnType<typeof nodeClient>;

function nodeClient(port: number) {
  return createClient({ socket: { host: "127.0.0.1", port, reconnectStrategy: 20 } });
}

async function busPort(client: NodeClient): Promise<string> {
  const nodes = String(await client.sendCommand(["CLUSTER", "NODES"]));
  return /@(\d+)/.exec(nodes)![1]!;
}
