// A job of unknown length that never runs twice at the same time: the lock is extended while the job runs, and is free
// 10 s after a crash. A replica that starts after the job has ended runs it again; interval.mjs runs a job once per
// interval.

import { endpointsFromEnv, LockHeldError, Redlock } from "redlock-edge";

const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env) });
const index = process.env.INDEX_URL ?? "https://index.example";
const options = {
  ttl: 10_000, // how long others wait after a crash
  wait: 5_000, // not 0: replicas that start at the same instant may each get some of the endpoints at first
  maxHold: 3_600_000, // a job that is stuck for an hour loses the lock
  fencing: true,
};

try {
  const pages = await redlock.using("reindex", options, async ({ signal, fence }) => {
    for (let page = 1; ; page += 1) {
      const indexed = await fetch(`${index}/pages/${page}`, {
        method: "PUT",
        headers: { "x-fence": String(fence) }, // the index refuses it after a later job has written
        signal, // aborts before another replica can acquire the lock
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
