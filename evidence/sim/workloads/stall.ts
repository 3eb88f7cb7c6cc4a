import { Redlock } from "../../../src/index.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import { sleep } from "../../../src/runtime/runtime.ts";
import { ioredisEndpoint } from "../../../src/sockets/index.ts";
import { QueueingClient } from "../network/queueing-client.ts";
import type { Process } from "../world/process.ts";
import type { SharedContext } from "./actor.ts";

// Clients with queues, whose connections stand still for a while under load.

/** ms that a command takes a server, and ms from one call to the next: a little less than half of what it can do. */
const [pace, every] = [2, 9];

/** ms after which all is as before. */
const patience = 1_000;

/** Lets the connections stand still where the scenario says so: a second later, everybody is served at once. */
export async function meetStall({ world, scenario, actors }: SharedContext): Promise<void> {
  const { stall } = scenario;
  const process = actors.find((actor) => actor.process.alive)?.process;
  if (!stall || !process) return;
  world.count("stall");
  for (const server of world.servers) server.pace = pace;
  const clients = world.servers.map((server) => new QueueingClient(world, process, server));
  const endpoints = clients.map((client, index) => ioredisEndpoint(client, { name: `s${index}` }));
  const redlock = new Redlock({ endpoints, runtime: process });
  const still = stall.everywhere ? clients : clients.slice(0, 1);
  const names: string[] = [];
  const load = async (ms: number): Promise<Promise<string>[]> => {
    const ends: Promise<string>[] = [];
    for (const end = process.monotonic() + ms; process.monotonic() < end; await sleep(process, every)) {
      const name = `stall-${names.length}`;
      names.push(name);
      ends.push(redlock.using(name, async () => "").catch((error: Error) => error.message));
    }
    return ends;
  };
  const isOver = await world.scheduler.settle(play(process), 120_000);
  world.check("calls end", isOver, () => "not after a stall");
  // What is to be rolled back has been by then.
  await world.scheduler.run(world.now + 3 * patience);
  const standing = names.filter((name) =>
    world.servers.some((server) => server.execute(["EXISTS", keyOf("redlock", "lock", name)]) === 1),
  );
  world.check("nothing is abandoned", standing.length === 0, () => `${standing.length} stand after a stall`);
  for (const server of world.servers) server.pace = 0;

  async function play(own: Process): Promise<void> {
    const before = await load(500);
    for (const client of still) client.standStill(stall!.ms);
    const during = await load(stall!.ms);
    const queued = Math.max(...clients.map(({ unanswered }) => unanswered));
    world.check("requests are bounded", queued <= 250, () => `${queued} commands are queued`);
    during.push(...(await load(patience)));
    const foreign = foreignTime(clients, own);
    const failed = (await Promise.all(await load(500))).filter((message) => message !== "");
    world.check("waiters are served", failed.length === 0, () => `${failed.length}: ${failed[0]}`);
    const ms = await foreign;
    world.check("waiters are served", ms <= patience, () => `the application waits for ${ms} ms`);
    await Promise.all([...before, ...during]);
  }
}

/** ms until the application's own commands are answered on all of them. */
async function foreignTime(clients: readonly QueueingClient[], process: Process): Promise<number> {
  const begin = process.monotonic();
  await Promise.all(clients.map((client) => client.call("PING")));
  return process.monotonic() - begin;
}
