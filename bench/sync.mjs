// Measures the cost of waiting: many contenders start at the same time and hold the lock for 50 ms each. Prints the
// time until all have held it, and the billed commands as the endpoints' logs count them. Each endpoint runs in a
// process of its own.
import { setTimeout as sleep } from "node:timers/promises";
import { pubSub, Redlock } from "../dist/index.js";
import { FairLock, Semaphore } from "../dist/sync/index.js";
import { startEndpointProcess } from "./endpoint-process.mjs";

const hold = 50;
const runs = 5;
const kinds = [
  { what: "plain lock", at: 1, make: (redlock, name) => (options) => redlock.acquire(name, options) },
  {
    what: "plain lock, `backoff.max` 100",
    at: 1,
    make: (redlock, name) => (options) => redlock.acquire(name, { ...options, backoff: { max: 100 } }),
  },
  {
    what: "plain lock, `wakeUp`",
    at: 1,
    wakeUp: pubSub,
    make: (redlock, name) => (options) => redlock.acquire(name, options),
  },
  { what: "FairLock", at: 1, make: acquirer((redlock, name) => new FairLock(redlock, name)) },
  {
    what: "FairLock, `wakeUp`",
    at: 1,
    wakeUp: pubSub,
    make: acquirer((redlock, name) => new FairLock(redlock, name)),
  },
  {
    what: "Semaphore of 4",
    at: 4,
    make: acquirer((redlock, name) => new Semaphore(redlock, name, { limit: 4 })),
  },
  {
    what: "Semaphore of 4, `wakeUp`",
    at: 4,
    wakeUp: pubSub,
    make: acquirer((redlock, name) => new Semaphore(redlock, name, { limit: 4 })),
  },
];

function acquirer(make) {
  return (redlock, name) => {
    const lock = make(redlock, name);
    return (options) => lock.acquire(options);
  };
}

export async function print() {
  const servers = await Promise.all([1, 2, 3].map(startEndpointProcess));
  const results = [];
  try {
    const [{ engine }] = servers;
    console.log(
      `\nWaiting: all want it at once and hold it for ${hold} ms; ${engine}, Node ${process.versions.node}; medians of ${runs} runs, least to most\n`,
    );
    console.log("|  | endpoints | waiters | total / ideal | commands per grant and endpoint |");
    console.log("| --- | --- | --- | --- | --- |");
    for (const kind of kinds) {
      for (const count of [1, 3]) {
        for (const waiters of kind.wakeUp ? [1, 10, 50, 200] : [1, 10, 50]) {
          results.push(await measure(kind, servers.slice(0, count), waiters));
        }
      }
    }
    return chartOf(results);
  } finally {
    await Promise.all(servers.map(({ stop }) => stop()));
  }
}

async function measure({ what, at, wakeUp, make }, servers, waiters) {
  const ideal = Math.ceil(waiters / at) * hold;
  const totals = [];
  const commands = [];
  for (let run = -1; run < runs; run += 1) {
    const name = `bench-${what}-${waiters}-${servers.length}-${run}`;
    // One client for each contender, as if each ran in a process of its own.
    const clients = Array.from({ length: waiters }, () =>
      make(new Redlock({ endpoints: servers.map(configOf), timeout: 5_000, wakeUp }), name),
    );
    const before = await billed(servers);
    const start = performance.now();
    await Promise.all(
      clients.map(async (acquire) => {
        const held = await acquire({ wait: 600_000 });
        await sleep(hold);
        await held.release();
      }),
    );
    const total = performance.now() - start;
    const after = await billed(servers);
    // Not counted: the first run opens connections and loads scripts.
    if (run < 0) continue;
    totals.push(total / ideal);
    commands.push((after - before) / waiters / servers.length);
  }
  const cells = [what, servers.length, waiters, spread(totals, 2), spread(commands, 1)];
  console.log(`| ${cells.join(" | ")} |`);
  return { what, count: servers.length, waiters, total: median(totals), commands: median(commands) };
}

/** The locks on one endpoint, as lines over the number of waiters. */
function chartOf(results) {
  const names = {
    "plain lock, `wakeUp`": "with wake-ups",
    FairLock: "FairLock",
    "plain lock": "plain lock",
    "plain lock, `backoff.max` 100": "pauses ≤ 100 ms",
  };
  const xs = [1, 10, 50, 200];
  const panel = (title, measureOf) => ({
    title,
    xTitle: "waiters",
    xs,
    lines: Object.entries(names).map(([what, name]) => {
      const own = results.filter((result) => result.what === what && result.count === 1);
      return { name, values: xs.map((x) => own.filter(({ waiters }) => waiters === x).map(measureOf)[0]) };
    }),
  });
  const most = results.findLast(({ what, count }) => names[what] === "with wake-ups" && count === 1);
  return {
    title: `With wake-ups, ${most.waiters} waiters take ${most.total.toFixed(1)} × the ideal time and ${most.commands.toFixed(0)} commands per grant (holds of ${hold} ms)`,
    panels: [
      panel("Time until all were served / ideal time", ({ total }) => total),
      panel("Commands per grant", ({ commands }) => commands),
    ],
  };
}

function median(samples) {
  return samples.toSorted((a, b) => a - b)[samples.length >> 1];
}

function spread(samples, digits) {
  const [least, middle, most] = [Math.min(...samples), median(samples), Math.max(...samples)];
  return `${middle.toFixed(digits)} (${least.toFixed(digits)} … ${most.toFixed(digits)})`;
}

async function billed(servers) {
  const counts = await Promise.all(servers.map((server) => server.billed()));
  return counts.reduce((sum, count) => sum + count, 0);
}

function configOf({ url, token }) {
  return { url, token, dialect: "upstash" };
}
