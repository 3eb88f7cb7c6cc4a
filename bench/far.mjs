// Measures contention with distant endpoints, one of which is silent, and how evenly plain locks serve contenders. Runs
// in virtual time: the figures depend on the seeds below and on the library, not on the machine.
import { Redlock } from "../dist/index.js";
import { FairLock } from "../dist/sync/index.js";
import { printHead, printRow } from "./table.mjs";
import { VirtualWorld } from "./virtual-time.mjs";

const hold = 50;
const kinds = {
  "plain lock": (redlock, name, options) => redlock.acquire(name, options),
  FairLock: (redlock, name, options) => new FairLock(redlock, name).acquire(options),
};

export async function print() {
  await printLoops();
  await printFairness();
}

async function printLoops() {
  printHead(
    `Eight contenders in a closed loop that hold it for ${hold} ms, 160 and 300 ms away, one endpoint silent; 5 runs of 60 s`,
    "",
    "first grant p90",
    "longest time without a grant",
    "grants per minute",
    "requests per grant",
  );
  for (const [kind, options] of [
    ["plain lock", {}],
    ["plain lock", { timeout: 400 }],
    ["FairLock", {}],
  ]) {
    const wants = Array(8).fill("resource");
    const runs = await loops(5, { roundTrips: [160, 300, Infinity], wants, options, acquire: kinds[kind] });
    const firsts = runs.map(({ grants }) => grants[0]?.at ?? Infinity).sort((a, b) => a - b);
    const title = options.timeout ? `${kind}, timeout ${options.timeout}` : kind;
    printRow(title, seconds(at(firsts, 0.9)), ...figuresOf(runs, 1));
  }
}

/** Runs with the seeds 1, 2 … */
async function loops(count, options) {
  const runs = [];
  for (let seed = 1; seed <= count; seed += 1) runs.push(await loop({ seed, ...options }));
  return runs;
}

/** The longest time without a grant, grants per minute, and requests per grant. */
function figuresOf(runs, digits) {
  const total = runs.reduce((sum, { grants }) => sum + grants.length, 0);
  const requests = runs.reduce((sum, each) => sum + each.requests, 0);
  const gap = Math.max(...runs.map(({ grants }) => longestGap(grants)));
  return [seconds(gap), (total / runs.length).toFixed(), (requests / total).toFixed(digits)];
}

async function printFairness() {
  printHead(
    "How evenly they are served in a closed loop without a pause; grants of each, in 3 runs of 60 s",
    "",
    "",
    "grants of each",
    "longest wait",
  );
  const four = ["a", "b", "c", "d"];
  const cases = [
    ["four contenders, 1 ms", ["a", "a", "a", "a"], ["plain lock", "FairLock"]],
    ["one for four resources, four for one of them each, 1 ms", [four, ...four], ["plain lock"]],
  ];
  for (const [what, wants, kindsHere] of cases) {
    for (const kind of kindsHere) {
      for (const { grants } of await loops(3, { roundTrips: [1, 1, 1], wants, acquire: kinds[kind] })) {
        const each = wants.map((_, who) => grants.filter((grant) => grant.who === who));
        const longest = each.map((own) => seconds(longestGap(own))).join(", ");
        printRow(what, kind, each.map(({ length }) => length).join(", "), longest);
      }
    }
  }
}

/** Runs contenders that acquire, hold and release in a loop, for 60 s. */
async function loop({ seed, roundTrips, wants, options = {}, acquire }) {
  const world = new VirtualWorld(seed, roundTrips);
  const grants = [];
  const contend = async (resource, who) => {
    const redlock = new Redlock({ endpoints: world.endpoints(), runtime: world.runtime(), ...options });
    await world.sleep(5 * world.random());
    for (;;) {
      try {
        const held = await acquire(redlock, resource, {});
        grants.push({ who, at: world.now });
        await world.sleep(hold);
        await held.release();
      } catch (error) {
        if (!error.code) throw error;
      }
    }
  };
  wants.forEach((resource, who) => void contend(resource, who));
  await world.run(60_000);
  return { grants, requests: world.requests };
}

/** The longest time without a grant in ms, including the time before the first and after the last. */
function longestGap(grants) {
  const times = [0, ...grants.map((grant) => grant.at), 60_000];
  return Math.max(...times.slice(1).map((time, index) => time - times[index]));
}

function at(sorted, share) {
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
}

function seconds(ms) {
  return ms < Infinity ? `${(ms / 1_000).toFixed(1)} s` : "none";
}
