import process from "node:process";
import { setImmediate as turn } from "node:timers/promises";
import { Redis } from "ioredis";
import { createClient } from "redis";
import { type Endpoint, Redlock } from "../../../src/index.ts";
import { ioredisEndpoint, nodeRedisEndpoint } from "../../../src/sockets/index.ts";
import { pubSub } from "../../../src/wake-up/index.ts";

// A process whose waiters give up while their connection is made, each some turns of the event loop later than the one
// before, and which then has nothing more to do.

const port = Number(process.argv[2]);

async function giveUp(endpoint: Endpoint): Promise<void> {
  const redlock = new Redlock({ endpoints: [endpoint], wakeUp: pubSub, wait: 60_000 });
  for (let turns = 0; turns < 12; turns += 1) {
    const controller = new AbortController();
    const stream = endpoint.subscribe!("news", controller.signal).catch(() => undefined);
    for (let count = 0; count < turns; count += 1) await turn();
    controller.abort();
    await (await stream)?.cancel();
  }
  const lock = await redlock.acquire("a");
  await redlock.acquire("a", { signal: AbortSignal.timeout(20) }).catch(() => undefined);
  await lock.release();
}

const io = new Redis(port);
await giveUp(ioredisEndpoint(io));
io.disconnect();
const node = await createClient({ socket: { host: "127.0.0.1", port } }).connect();
await giveUp(nodeRedisEndpoint(node));
node.destroy();
