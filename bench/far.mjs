// Measures contention with distant endpoints, one of which is silent, and how evenly plain locks serve contenders. Runs
// in virtual time: the figures depend on the seeds below and on the library, not on the machine.
import { Redlock } from "../dist/index.js";
import { FairLock } from "../dist/sync/index.js";
import { VirtualWorld } from "./virtual-time.mjs";

const hold = 50;
const farAndSilent = [160, 300, Infinity];
const sets = [
  ["160 and 300 ms, one silent", farAndSilent],
  ["1 ms, one silent", [1, 1, Infinity]],
  ["1 ms, all up", [1, 1, 1]],
  ["160, 300 and 350 ms, all up", [160, 300, 350]],
  ["1, 1 and 300 ms, all up", [1, 1, 300]],
  ["1, 300 and 300 ms, all up", [1, 300, 300]],
];
const kinds = {
  "plain lock": (redlock, name, options) => redlock.acquire(name, options),
  FairLock: (redlock, name, options) => new FairLock(redlock, name).acquire(options),
};

export async function print() {
  await printLoops();
  await printLosses();
  await printFairness();
}

async function printLoops() {
  console.log(`\nEight contenders in a closed loop that hold it for ${hold} ms; 5 runs of 60 s\n`);
  console.log(
    "|  |  | first grant p90 | longest time without a grant | grants per minute | requests per grant |",
  );
  console.log("| --- | --- | --- | --- | --- | --- |");
  for (const [what, roundTrips] of sets) {
    const variants = [
      ["plain lock", {}],
      ["plain lock", { timeout: 400 }],
      ["FairLock", {}],
    ];
    for (const [kind, options] of variants) {
      if (options.timeout && roundTrips !== farAndSilent) continue;
      const loops = [];
      for (let seed = 1; seed <= 5; seed += 1) {
        const wants = Array.from({ length: 8 }, () => "resource");
        loops.push(await loop({ seed, roundTrips, wants, options, acquire: kinds[kind] }));
      }
      const firsts = loops.map(({ grants }) => grants[0]?.at ?? Infinity).sort((a, b) => a - b);
      const total = loops.reduce((sum, { grants }) => sum + grants.length, 0);
      const requests = loops.reduce((sum, each) => sum + each.requests, 0);
      const gap = Math.max(...loops.map(({ grants }) => longestGap(grants)));
      row(
        what,
        options.timeout ? `${kind}, timeout ${options.timeout}` : kind,
        seconds(at(firsts, 0.9)),
        seconds(gap),
        (total / loops.length).toFixed(),
        (requests / total).toFixed(1),
      );
    }
  }
}

async function printLosses() {
  console.log("\n51 contenders in a closed loop, 160, 200 and 300 ms away; 3 runs of 60 s\n");
  console.log(
    "|  | requests and replies lost | longest time without a grant | grants per minute | requests per grant |",
  );
  console.log("| --- | --- | --- | --- | --- |");
  const wants = Array.from({ length: 51 }, () => "resource");
  for (const [kind, acquire] of Object.entries(kinds)) {
    for (const loss of [0, 0.05]) {
      const loops = [];
      for (let seed = 1; seed <= 3; seed += 1) {
        const options = { wait: 600_000 };
        loops.push(await loop({ seed, roundTrips: [160, 200, 300], wants, options, acquire, loss }));
      }
      const total = loops.reduce((sum, { grants }) => sum + grants.length, 0);
      const requests = loops.reduce((sum, each) => sum + each.requests, 0);
      const gap = Math.max(...loops.map(({ grants }) => longestGap(grants)));
      row(
        kind,
        `${100 * loss} %`,
        seconds(gap),
        (total / loops.length).toFixed(),
        (requests / total).toFixed(),
      );
    }
  }
}

async function printFairness() {
  console.log(
    "\nHow evenly they are served in a closed loop without a pause; grants of each, in 3 runs of 60 s\n",
  );
  console.log("|  |  | grants of each | longest wait |");
  console.log("| --- | --- | --- | --- |");
  const four = ["a", "b", "c", "d"];
  const cases = [
    ["four contenders, 1 ms", ["a", "a", "a", "a"], ["plain lock", "FairLock"]],
    ["one for four resources, four for one of them each, 1 ms", [four, ...four], ["plain lock"]],
  ];
  for (const [what, wants, kindsHere] of cases) {
    for (const kind of kindsHere) {
      for (let seed = 1; seed <= 3; seed += 1) {
        const { grants } = await loop({ seed, roundTrips: [1, 1, 1], wants, acquire: kinds[kind] });
        const each = wants.map((_, who) => grants.filter((grant) => grant.who === who));
        const longest = each.map((own) => seconds(longestGap(own))).join(", ");
        row(what, kind, each.map(({ length }) => length).join(", "), longest);
      }
    }
  }
}

/** Runs contenders that acquire, hold and release in a loop, for 60 s. */
async function loop({ seed, roundTrips, wants, options = {}, acquire, loss }) {
  const world = new VirtualWorld(seed, roundTrips, loss);
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

function row(...cells) {
  console.log(`| ${cells.join(" | ")} |`);
}
