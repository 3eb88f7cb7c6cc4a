// Measures waiting by polls and by wake-ups, with holds of 50 and 500 ms. Runs in virtual time: the figures depend on the
// seeds below and on the library, not on the machine.
import { Redlock } from "../dist/index.js";
import { FairLock } from "../dist/sync/index.js";
import { pubSub } from "../dist/wake-up/index.js";
import { printHead, printRow } from "./table.mjs";
import { VirtualWorld } from "./virtual-time.mjs";

const roundTrip = 2;
const seed = 7;
const numbers = [1, 10, 50, 200];
const kinds = [
  { what: "plain lock", acquire: (redlock, options) => redlock.acquire("a", options) },
  {
    what: "FairLock",
    acquire: (redlock, options) => new FairLock(redlock, "a").acquire(options),
  },
];

export async function print() {
  await printPolls();
  const title = `Waiting in virtual time, round trip ${roundTrip} ms: total / ideal time at commands per grant`;
  printHead(title, "", "", "hold", "1 waiter", "10", "50", "200");
  for (const kind of kinds) {
    for (const wakeUp of [undefined, pubSub]) {
      for (const hold of [50, 500]) {
        const cells = [];
        const way = wakeUp ? "wake-ups" : "polls";
        for (const waiters of numbers) {
          const { total, commands } = await measure(kind, { wakeUp, hold, waiters });
          cells.push(`${total.toFixed(2)} × at ${commands.toFixed(1)}`);
        }
        printRow(kind.what, way, `${hold} ms`, ...cells);
      }
    }
  }
}

const crowds = [2, 5, 10, 20, 50, 200];
const load = 0.7;
const arrivals = 400;

/** How well a plain lock's waiters guess when to ask. */
async function printPolls() {
  const [{ acquire }] = kinds;
  const title = `Polls for a plain lock in virtual time, one endpoint, round trip ${roundTrip} ms. All at once: total / ideal time at commands per grant. Poisson: ${arrivals} waiters arrive at random, ${100 * load} % of what fits; Jain's index of their waits is 1 where all are equal`;
  const columns = crowds.map((count) => `${count} at once`);
  printHead(title, "hold", ...columns, "Poisson: mean wait", "p99", "Jain", "commands");
  for (const hold of [50, 500]) {
    const cells = [];
    for (const waiters of crowds) {
      const runs = [];
      // About as many grants for each figure.
      for (let run = 0; run < Math.ceil(200 / waiters); run += 1) {
        runs.push(await contend(acquire, { seed: seed + run, hold, starts: Array(waiters).fill(0) }));
      }
      const total = mean(runs.map(({ total }) => total)) / (waiters * hold);
      cells.push(`${total.toFixed(2)} × at ${(mean(runs.map(({ billed }) => billed)) / waiters).toFixed(1)}`);
    }
    const waits = [];
    const billed = [];
    for (let run = 0; run < 5; run += 1) {
      const { random } = new VirtualWorld(seed + run, []).runtime();
      let at = 0;
      const starts = Array.from({ length: arrivals }, () => (at -= (Math.log(1 - random()) * hold) / load));
      const outcome = await contend(acquire, { seed: seed + run, hold, starts });
      waits.push(...outcome.waits);
      billed.push(outcome.billed / arrivals);
    }
    waits.sort((one, two) => one - two);
    const p99 = waits[Math.floor(0.99 * waits.length)];
    const jain = (mean(waits) ** 2 / mean(waits.map((wait) => wait ** 2))).toFixed(2);
    cells.push(`${mean(waits).toFixed()} ms`, `${p99.toFixed()} ms`, jain, mean(billed).toFixed(1));
    printRow(`${hold} ms`, ...cells);
  }
}

function mean(samples) {
  return samples.reduce((sum, each) => sum + each, 0) / samples.length;
}

async function measure({ acquire }, { wakeUp, hold, waiters }) {
  const starts = Array(waiters).fill(0);
  const { total, billed } = await contend(acquire, { seed, wakeUp, hold, starts });
  return { total: total / (waiters * hold), commands: billed / waiters };
}

/** Lets one waiter start at each of these times. Their total time, what they were billed, and how long each waited. */
async function contend(acquire, { seed, wakeUp, hold, starts }) {
  const world = new VirtualWorld(seed, [roundTrip]);
  let waiting = starts.length;
  const waits = [];
  const failures = [];
  const takeTurn = async (start) => {
    // A client of its own, as if it ran in a process of its own.
    const redlock = new Redlock({ endpoints: world.endpoints(), runtime: world.runtime(), wakeUp });
    if (start > 0) await world.sleep(start);
    const held = await acquire(redlock, { wait: 6_000_000 });
    waits.push(world.now - start);
    await world.sleep(hold);
    await held.release();
    waiting -= 1;
  };
  for (const start of starts) takeTurn(start).catch((error) => failures.push(error));
  await world.run(1e9, () => waiting === 0 || failures.length > 0);
  if (failures.length > 0) throw failures[0];
  // SUBSCRIBE and UNSUBSCRIBE are billed, too.
  return { total: world.now, billed: world.billed + 2 * world.streams, waits };
}
