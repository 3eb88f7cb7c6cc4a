// A lock server in workerd: `npm run bench -- durable`. On Cloudflare the distance between Worker and object comes on top.

import { Miniflare } from "miniflare";
import { bundle } from "../tools/bundle.mjs";

const cycles = 200;
const turns = 5;

export async function print() {
  const worker = await startWorker();
  try {
    const url = (await worker.ready).href;
    const ask = async (path) => (await fetch(new URL(path, url))).text();
    const times = [];
    for (let turn = 0; turn <= turns; turn += 1) {
      const start = performance.now();
      await ask(`/?cycles=${cycles}`);
      // The first turn makes the table.
      if (turn > 0) times.push((performance.now() - start) / cycles);
    }
    times.sort((one, other) => one - other);
    const rowsOf = async (path) => {
      const before = Number(await ask("/rows"));
      await ask(path);
      return (Number(await ask("/rows")) - before) / 100;
    };
    console.log("\nA lock server in workerd, through the binding\n");
    console.log(`acquire and release, one after another: ${times[Math.floor(turns / 2)].toFixed(2)} ms`);
    console.log(`rows written per lock: ${await rowsOf("/?cycles=100")}`);
    console.log(`rows written per lock with a fence: ${await rowsOf("/?cycles=100&fence")}`);
  } finally {
    await worker.dispose();
  }
}

async function startWorker() {
  const script = await bundle("bench/durable/worker.js");
  return new Miniflare({
    modules: true,
    script,
    compatibilityDate: "2026-04-01",
    durableObjects: { LOCKS: { className: "Counted", useSQLite: true } },
  });
}
