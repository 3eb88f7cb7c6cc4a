import { commandsAt, median } from "./contention.mjs";
import { replayOf } from "./replay.mjs";

const warmUp = 200;
const samples = 1_000;
const counted = 50;

/**
 * Measures acquire and release of a lock that nobody else wants.
 *
 * @returns {Promise<object[]>} for each kind: `ms`, `bare` (ms of the same requests without the library), and `commands`
 * per server; medians of interleaved samples
 */
export async function uncontended(locks, servers) {
  const kinds = [];
  for (const lock of locks.filter(({ counts }) => counts.includes(servers.length))) {
    const client = lock.open(servers, `bench-uncontended-${servers.length}-${lock.name}`);
    await client.ready;
    const pass = async () => {
      const release = await client.acquire();
      await release();
    };
    // The first pass loads scripts, which the following ones do not.
    await pass();
    const tasks = [await replayOf(client), pass];
    kinds.push({ lock, client, tasks, times: [[], []] });
  }
  for (let sample = -warmUp; sample < samples; sample += 1) {
    for (const { tasks, times } of kinds) {
      // In alternating order, so that neither always runs after the other.
      for (const index of sample % 2 ? [1, 0] : [0, 1]) {
        const start = performance.now();
        await tasks[index]();
        if (sample >= 0) times[index].push(performance.now() - start);
      }
    }
  }
  const results = [];
  for (const { lock, client, tasks, times } of kinds) {
    const before = await commandsAt(servers, lock.transport);
    for (let pass = 0; pass < counted; pass += 1) await tasks[1]();
    const commands = ((await commandsAt(servers, lock.transport)) - before) / counted / servers.length;
    client.close();
    const [bare, ms] = times.map(median);
    results.push({ lock, count: servers.length, ms, bare, commands });
  }
  return results;
}
