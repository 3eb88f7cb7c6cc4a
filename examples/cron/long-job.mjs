// A job of unknown length, never twice at the same time: the lock is extended while it runs, and 10 s after a
// crash it is free. A replica that starts after the end runs the job again; see interval.mjs for once per interval.

import { endpointsFromEnv, LockHeldError, Redlock } from "redlock-edge";

const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env) });
const index = process.env.INDEX_URL ?? "https://index.example";
const options = {
  ttl: 10_000, // how long others wait after a crash
  wait: 5_000, // not 0: of replicas that start at once each may get a part of the endpoints at first
  maxHold: 3_600_000, // a job that is stuck for an hour frees the lock
  fencing: true,
};

try {
  const pages = await redlock.using("reindex", options, async ({ signal, fence }) => {
    for (let page = 1; ; page += 1) {
      const indexed = await fetch(`${index}/pages/${page}`, {
        method: "PUT",
        headers: { "x-fence": String(fence) }, // refused by the index when a later job has been there
        signal, // aborts before another replica can have the lock
      });
      await indexed.body?.cancel();
      if (indexed.status === 404) return page - 1;
      if (!indexed.ok) throw new Error(`page ${page}: the index answered ${indexed.status}`);
    }
  });
  console.log(`replica ${process.pid} indexed ${pages} pages`);
} catch (error) {
  if (!(error instanceof LockHeldError)) throw error;
  console.log(`replica ${process.pid} leaves it to another`);
}
