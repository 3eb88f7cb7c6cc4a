// A process in which waiters contend for one lock; see contention.mjs. Its end ends whatever they still wait for.
import { setTimeout as sleep } from "node:timers/promises";
import { locks } from "./locks.mjs";

process.once("message", async ({ name, servers, resource, waiters, hold, limit }) => {
  const { open } = locks.find((lock) => lock.name === name);
  // A client and connections of its own for each, as if each ran in a process of its own.
  const clients = Array.from({ length: waiters }, () => open(servers, resource));
  await Promise.all(clients.map(({ ready }) => ready));
  let served = 0;
  let holders = 0;
  let mostHolders = 0;
  const start = performance.now();
  const all = Promise.all(
    clients.map(async ({ acquire }) => {
      const release = await acquire();
      holders += 1;
      mostHolders = Math.max(mostHolders, holders);
      await sleep(hold);
      holders -= 1;
      served += 1;
      await release();
    }),
  );
  await Promise.race([all, sleep(limit)]);
  process.send({ served, mostHolders, ms: performance.now() - start });
});
process.send("ready");
