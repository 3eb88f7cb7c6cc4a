// Measures waiting by polls and by wake-ups, with holds of 50 and 500 ms. Runs in virtual time: the figures depend on the
// seed below and on the library, not on the machine. `sync.mjs` has the same with real servers.
import { pubSub, Redlock } from "../dist/index.js";
import { FairLock, Semaphore } from "../dist/sync/index.js";
import { VirtualWorld } from "./virtual-time.mjs";

const roundTrip = 2;
const seed = 7;
const numbers = [1, 10, 50, 200];
const kinds = [
  { what: "plain lock", at: 1, acquire: (redlock, options) => redlock.acquire("a", options) },
  {
    what: "FairLock",
    at: 1,
    acquire: (redlock, options) => new FairLock(redlock, "a").acquire(options),
  },
  {
    what: "Semaphore of 4",
    at: 4,
    acquire: (redlock, options) => new Semaphore(redlock, "a", { limit: 4 }).acquire(options),
  },
];

export async function print() {
  console.log(
    `\nWaiting in virtual time, round trip ${roundTrip} ms: total / ideal time at commands per grant and endpoint\n`,
  );
  console.log("|  |  | endpoints | hold | 1 waiter | 10 | 50 | 200 |");
  console.log("| --- | --- | --- | --- | --- | --- | --- | --- |");
  const results = [];
  for (const kind of kinds) {
    for (const wakeUp of [undefined, pubSub]) {
      for (const count of [1, 3]) {
        for (const hold of [50, 500]) {
          const cells = [];
          const way = wakeUp ? "wake-ups" : "polls";
          for (const waiters of numbers) {
            const { total, commands } = await measure(kind, { wakeUp, count, hold, waiters });
            results.push({ what: kind.what, way, count, hold, waiters, total, commands });
            cells.push(`${total.toFixed(2)} × at ${commands.toFixed(1)}`);
          }
          console.log(`| ${[kind.what, way, count, `${hold} ms`, ...cells].join(" | ")} |`);
        }
      }
    }
  }
  return chartOf(results);
}

/** The plain lock on one endpoint, as lines over the number of waiters. */
function chartOf(results) {
  const variants = [
    ["wake-ups", 50],
    ["wake-ups", 500],
    ["polls", 50],
    ["polls", 500],
  ];
  const panel = (title, measureOf) => ({
    title,
    xTitle: "waiters",
    xs: numbers,
    lines: variants.map(([way, hold]) => ({
      name: `${way}, hold ${hold} ms`,
      values: results
        .filter((each) => each.what === "plain lock" && each.count === 1)
        .filter((each) => each.way === way && each.hold === hold)
        .map(measureOf),
    })),
  });
  return {
    title: "Polling gets dearer the more wait and the longer a lock is held; wake-ups do not",
    panels: [
      panel("Time until all were served / ideal time", ({ total }) => total),
      panel("Commands per grant", ({ commands }) => commands),
    ],
  };
}

async function measure({ at, acquire }, { wakeUp, count, hold, waiters }) {
  const world = new VirtualWorld(seed, Array(count).fill(roundTrip));
  let waiting = waiters;
  let commands = 0;
  const onEvent = (event) => {
    if (event.type === "acquired" || event.type === "released") commands += event.commands;
  };
  const failures = [];
  const contend = async () => {
    // A client of its own, as if it ran in a process of its own.
    const redlock = new Redlock({ endpoints: world.endpoints(), runtime: world.runtime(), wakeUp, onEvent });
    const held = await acquire(redlock, { wait: 6_000_000 });
    await world.sleep(hold);
    await held.release();
    waiting -= 1;
  };
  for (let waiter = 0; waiter < waiters; waiter += 1) contend().catch((error) => failures.push(error));
  await world.run(1e9, () => waiting === 0 || failures.length > 0);
  if (failures.length > 0) throw failures[0];
  const ideal = Math.ceil(waiters / at) * hold;
  // SUBSCRIBE and UNSUBSCRIBE are billed, too.
  const billed = commands + 2 * world.streams;
  return { total: world.now / ideal, commands: billed / waiters / count };
}
