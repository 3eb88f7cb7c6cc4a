// Measures waiting by polls and by wake-ups, with holds of 50 and 500 ms. Runs in virtual time: the figures depend on the
// seeds below and on the library, not on the machine.
import { Redlock } from "../dist/index.js";
import { FairLock, Mailbox } from "../dist/sync/index.js";
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
  await printPosters();
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

const load = 0.7;
const arrivals = 400;

/** How well a plain lock's waiters guess when to ask. */
async function printPolls() {
  const [{ acquire }] = kinds;
  const title = `Polls for a plain lock in virtual time, one endpoint, round trip ${roundTrip} ms: ${arrivals} waiters arrive at random, ${100 * load} % of what fits; Jain's index of their waits is 1 where all are equal`;
  printHead(title, "hold", "mean wait", "p99", "Jain", "commands");
  for (const hold of [50, 500]) {
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
    const jain = mean(waits) ** 2 / mean(waits.map((wait) => wait ** 2));
    const seconds = [mean(waits), p99].map((ms) => `${(ms / 1_000).toFixed(1)} s`);
    printRow(`${hold} ms`, ...seconds, jain.toFixed(2), mean(billed).toFixed(1));
  }
}

const posters = 20;
const answer = 50;

/** What becomes of messages of one conversation: each caller has one, and they are handled one after another. */
const posting = {
  /** Each waits for the lock, and handles its own. */
  async "a lock"({ redlock, handle, id }) {
    const lock = await redlock.acquire("a", { wait: 6_000_000 });
    await handle(id);
    await lock.release();
  },
  /** A call that gets the lock handles all that is in the queue. The others leave their messages there. */
  async "a lock and a queue"({ redlock, endpoint, handle, id, now }) {
    const send = (...command) => endpoint.send(command, new AbortController().signal);
    await send("ZADD", "queue", "GT", now(), id);
    const lock = await redlock.tryAcquire("a");
    if (!lock) return;
    for (;;) {
      const [next] = await send("ZRANGE", "queue", 0, 0);
      if (next === undefined) break;
      await handle(next);
      await send("ZREM", "queue", next);
    }
    await lock.release();
  },
  async "`Mailbox`"({ redlock, handle, id }) {
    await new Mailbox(redlock, "a").post({ id, value: id }, readAll(handle));
  },
  async "`Mailbox`, `standBy`"({ redlock, handle, id }) {
    const options = { standBy: true, wait: 6_000_000 };
    await new Mailbox(redlock, "a").post({ id, value: id }, readAll(handle), options);
  },
};

const readAll = (handle) => async (messages) => {
  for await (const { value } of messages) await handle(value);
};

/** Posters of one conversation: what they cost, how long their calls take, and which messages nobody handles. */
async function printPosters() {
  const title = `${posters} posters at random, ${100 * load} % of what fits, one endpoint, round trips of ${roundTrip} to ${roundTrip + 10} ms, ${answer} ms for an answer, 50 runs`;
  printHead(
    title,
    "",
    "commands per message",
    "mean time of a call",
    "mean time to the answer",
    "left behind",
  );
  for (const [what, post] of Object.entries(posting)) {
    for (const wakeUp of what.includes("queue") || what === "`Mailbox`" ? [undefined] : [undefined, pubSub]) {
      const runs = [];
      for (let run = 0; run < 50; run += 1) runs.push(await letPost(post, { seed: seed + run, wakeUp }));
      const all = (name) => runs.flatMap((each) => each[name]);
      const left = runs.reduce((sum, each) => sum + each.left.size, 0);
      const cells = [mean(all("billed")).toFixed(1), `${mean(all("calls")).toFixed()} ms`];
      printRow(
        wakeUp ? `${what}, \`wakeUp\`` : what,
        ...cells,
        `${mean(all("answers")).toFixed()} ms`,
        String(left),
      );
    }
  }
}

async function letPost(post, { seed, wakeUp }) {
  const world = new VirtualWorld(seed, [roundTrip]);
  const calls = [];
  const answers = [];
  const failures = [];
  const begun = new Map();
  const handled = new Set();
  /** Those that wait while no call is under way. */
  const left = new Set();
  const handle = async (id) => {
    await world.sleep(answer);
    handled.add(id);
    answers.push(world.now - begun.get(id));
  };
  let at = 0;
  const deliver = async (id, start) => {
    const [near] = world.endpoints();
    // Callers are in different places.
    const way = 10 * world.random();
    const send = async (...request) => {
      await world.sleep(way);
      return near.send(...request);
    };
    const endpoint = { ...near, send };
    const redlock = new Redlock({ endpoints: [endpoint], runtime: world.runtime(), wakeUp });
    await world.sleep(start);
    begun.set(id, world.now);
    await post({ redlock, endpoint, handle, id, now: () => Math.round(world.now) });
    calls.push(world.now - begun.get(id));
    if (calls.length < begun.size) return;
    for (const each of begun.keys()) if (!handled.has(each)) left.add(each);
  };
  for (let index = 0; index < posters; index += 1) {
    at -= (Math.log(1 - world.random()) * answer) / load;
    deliver(`m${index}`, at).catch((error) => failures.push(error));
  }
  await world.run(1e9, () => calls.length === posters || failures.length > 0);
  if (failures.length > 0) throw failures[0];
  return { calls, answers, left, billed: [(world.billed + 2 * world.streams) / posters] };
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
