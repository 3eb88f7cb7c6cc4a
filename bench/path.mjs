// What one lock costs in the process: promises, clock reads and timers of acquire and of release, and CPU of the pair. The
// endpoints answer at once and in the process, so that nothing else is counted.
import { createHook } from "node:async_hooks";
import process from "node:process";
import { Redlock } from "../dist/index.js";
import { printHead, printRow } from "./table.mjs";

const counts = { promises: 0, clocks: 0, timers: 0 };

const hook = createHook({
  init(_, type) {
    if (type === "PROMISE") counts.promises += 1;
  },
});

const runtime = {
  now() {
    counts.clocks += 1;
    return Date.now();
  },
  monotonic() {
    counts.clocks += 1;
    return performance.now();
  },
  timer(ms, callback) {
    counts.timers += 1;
    const id = setTimeout(callback, ms);
    return () => clearTimeout(id);
  },
  random: Math.random,
  randomBytes: (bytes) => crypto.getRandomValues(bytes),
};

export async function print() {
  const title = "The path of one lock, with endpoints in the process that answer at once";
  printHead(title, "endpoints", "", "promises", "clock reads", "timers", "CPU of the pair");
  for (const count of [1, 3]) {
    const endpoints = Array.from({ length: count }, (_, index) => endpoint(`e${index + 1}`));
    const [acquired, released] = await countsOf(new Redlock({ endpoints, runtime }));
    const cpu = await cpuOf(new Redlock({ endpoints }));
    printRow(count, "acquire", ...Object.values(acquired), "");
    printRow(count, "release", ...Object.values(released), `${cpu.toFixed(1)} µs`);
  }
}

/** It grants everything, as a Redis 8.4 does. Its own promises are among those that are counted. */
function endpoint(name) {
  const replies = { SET: "OK", DELEX: 1 };
  const send = ([command]) => Promise.resolve(replies[command]);
  return { name, dialect: "redis-8.4", exactReplies: true, send };
}

/** The counts of one acquire, and of its release. */
async function countsOf(redlock) {
  // The first ones know nothing of their endpoints.
  for (let warm = 0; warm < 3; warm += 1) await (await redlock.acquire("r")).release();
  hook.enable();
  const results = [];
  let lock;
  for (const step of [async () => (lock = await redlock.acquire("r")), () => lock.release()]) {
    Object.assign(counts, { promises: 0, clocks: 0, timers: 0 });
    await step();
    results.push({ ...counts });
  }
  hook.disable();
  return results;
}

/** µs of CPU for one pair: the best of five. */
async function cpuOf(redlock) {
  const pairs = 5_000;
  const samples = [];
  for (let sample = 0; sample < 6; sample += 1) {
    const before = process.cpuUsage();
    for (let pair = 0; pair < pairs; pair += 1) await (await redlock.acquire("r")).release();
    const { user, system } = process.cpuUsage(before);
    samples.push((user + system) / pairs);
  }
  return Math.min(...samples.slice(1));
}
