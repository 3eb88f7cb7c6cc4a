import { slotOf } from "./cluster-slot.ts";
import { freePort } from "./free-port.ts";
import { askServer, startServerWith } from "./redis-servers.ts";
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

/** Starts a cluster of three nodes, which ends with the worker at the latest. */
export async function startRedisCluster(): Promise<RedisCluster> {
  // The default port of the bus, which is 10 000 higher, may be above the highest port.
  const buses = await Promise.all([freePort(), freePort(), freePort()]);
  const nodes = await Promise.all(
    buses.map((bus) =>
      startServerWith("--cluster-enabled yes", "--cluster-node-timeout 5000", `--cluster-port ${bus}`),
    ),
  );
  const ports = nodes.map(({ port }) => port);
  await formCluster(ports, buses);
  /** Of slots that were moved: the node's index. */
  const owners = new Map<number, number>();
  return {
    ports,
    async moveSlotOf(key, during = () => Promise.resolve()) {
      const slot = slotOf(key);
      const from = owners.get(slot) ?? Math.floor((slot * ports.length) / slots);
      const to = (from + 1) % ports.length;
      owners.set(slot, to);
      await moveSlot(slot, ports[from]!, ports[to]!, during);
    },
    async flush() {
      for (const port of ports) await askServer(port, "FLUSHALL");
    },
    async close() {
      for (const node of nodes) await node.kill();
    },
  };
}

/** Distributes the slots, connects the nodes with each other, and waits until all agree. */
async function formCluster(ports: readonly number[], buses: readonly number[]): Promise<void> {
  for (const [index, port] of ports.entries()) {
    const [from, to] = [index, index + 1].map((part) => Math.ceil((slots * part) / ports.length));
    await askServer(port, "CLUSTER", "ADDSLOTSRANGE", from!, to! - 1);
    if (index > 0) await askServer(ports[0]!, "CLUSTER", "MEET", "127.0.0.1", port, buses[index]!);
  }
  for (const port of ports) {
    await until(async () => {
      const state = String(await askServer(port, "CLUSTER", "INFO"));
      return state.includes("cluster_state:ok") && state.includes("cluster_known_nodes:3");
    }, "the cluster to form");
  }
}

async function moveSlot(
  slot: number,
  from: number,
  to: number,
  during: () => Promise<unknown>,
): Promise<void> {
  const [source, target] = await Promise.all(
    [from, to].map(async (port) => String(await askServer(port, "CLUSTER", "MYID"))),
  );
  await askServer(to, "CLUSTER", "SETSLOT", slot, "IMPORTING", source!);
  await askServer(from, "CLUSTER", "SETSLOT", slot, "MIGRATING", target!);
  await during();
  for (;;) {
    const keys = (await askServer(from, "CLUSTER", "GETKEYSINSLOT", slot, 100)) as string[];
    if (keys.length === 0) break;
    await askServer(from, "MIGRATE", "127.0.0.1", to, "", 0, 5_000, "KEYS", ...keys);
    await during();
  }
  for (const port of [to, from]) await askServer(port, "CLUSTER", "SETSLOT", slot, "NODE", target!);
}
