import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";

/** How many wait, and how long each holds the lock, in ms. */
export const waiters = 20;
export const hold = 50;
const runs = 3;
const limit = 30_000;

/**
 * Lets waiters contend for a lock of each kind that can use so many servers.
 *
 * @returns {Promise<object[]>} for each: `total` over ideal time, `commands` per grant and server, `mostHolders` at the
 * same time, and `served`, the least number of waiters that were served in the limit; medians of the runs
 */
export async function contention(locks, servers) {
  const results = [];
  for (const lock of locks.filter(({ counts }) => counts.includes(servers.length))) {
    const samples = [];
    // The first run opens connections and loads scripts, and is not counted.
    for (let run = -1; run < runs; run += 1) {
      const resource = `bench-contention-${servers.length}-${lock.name}-${run}`;
      const sample = await once(lock, servers, resource);
      if (run >= 0) samples.push(sample);
    }
    results.push({
      lock,
      count: servers.length,
      total: median(samples.map(({ ms, served }) => ms / (Math.max(1, served) * hold))),
      commands: median(
        samples.map(({ commands, served }) => commands / Math.max(1, served) / servers.length),
      ),
      mostHolders: Math.max(...samples.map(({ mostHolders }) => mostHolders)),
      served: Math.min(...samples.map(({ served }) => served)),
    });
  }
  return results;
}

async function once({ name, transport }, servers, resource) {
  const child = fork(fileURLToPath(new URL("contend.mjs", import.meta.url)));
  const message = () =>
    new Promise((resolve, reject) => {
      child.once("exit", () => reject(new Error(`${name}: the process of the waiters has ended`)));
      child.once("message", resolve);
    });
  const exited = new Promise((resolve) => child.once("exit", resolve));
  try {
    await message();
    const before = await commandsAt(servers, transport);
    const result = message();
    const plain = servers.map(({ url, token, redisUrl }) => ({ url, token, redisUrl }));
    child.send({ name, servers: plain, resource, waiters, hold, limit });
    return { ...(await result), commands: (await commandsAt(servers, transport)) - before };
  } finally {
    child.kill("SIGKILL");
    await exited;
  }
}

/** The commands that all servers together have executed so far: over HTTP as Upstash bills them, which counts the same. */
export async function commandsAt(servers, transport) {
  const counts = await Promise.all(
    servers.map((server) => (transport === "http" ? server.billed() : server.executed())),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

export function median(samples) {
  return samples.toSorted((a, b) => a - b)[samples.length >> 1];
}
