// A lock server in workerd: `npm run bench -- durable`. Beside it, an endpoint with a real redis-server, through HTTP from the
// same Worker. On Cloudflare the distance between Worker and object comes on top.

import { Miniflare } from "miniflare";
import { bundle } from "../tools/bundle.mjs";
import { startEndpointProcesses } from "./endpoint-process.mjs";
import { printHead, printRow } from "./table.mjs";

const cycles = 200;
const turns = 5;
const connections = 50;
const seconds = 5;

export async function print() {
  const [server] = await startEndpointProcesses([0]);
  const worker = await startWorker(server);
  try {
    const url = (await worker.ready).href;
    const ask = async (path) => (await fetch(new URL(path, url))).text();
    const ways = ["binding", "http"];
    const times = ways.map(() => []);
    for (let turn = 0; turn <= turns; turn += 1) {
      for (const [index, way] of ways.entries()) {
        const start = performance.now();
        await ask(`/${way}?cycles=${cycles}`);
        // The first turn loads scripts and opens connections.
        if (turn > 0) times[index].push((performance.now() - start) / cycles);
      }
    }
    const title = `A lock server in workerd, beside an endpoint (${server.engine}) through HTTP`;
    printHead(title, "", "acquire + release, one after another");
    for (const [index, way] of ways.entries()) {
      times[index].sort((a, b) => a - b);
      printRow(way, `${times[index][Math.floor(turns / 2)].toFixed(2)} ms`);
    }
    const rowsOf = async (path) => {
      const before = Number(await ask("/rows"));
      await ask(path);
      return (Number(await ask("/rows")) - before) / 100;
    };
    console.log(`\nrows written per lock: ${await rowsOf("/binding?cycles=100")}`);
    console.log(`rows written per lock with a fence: ${await rowsOf("/binding?cycles=100&fence")}`);
    let count = 0;
    const end = performance.now() + seconds * 1_000;
    const connection = async () => {
      for (; performance.now() < end; count += 1) await ask("/binding?cycles=1");
    };
    await Promise.all(Array.from({ length: connections }, connection));
    console.log(
      `requests a second to one object, ${connections} connections: ${Math.round((2 * count) / seconds)}`,
    );
  } finally {
    await worker.dispose();
    await server.stop();
  }
}

async function startWorker({ url, token }) {
  const script = await bundle("bench/durable/worker.js");
  return new Miniflare({
    modules: true,
    script,
    compatibilityDate: "2026-04-01",
    bindings: { ENDPOINT_URL: url, ENDPOINT_TOKEN: token },
    durableObjects: { LOCKS: { className: "Counted", useSQLite: true } },
  });
}
