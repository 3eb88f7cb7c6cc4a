// Measures what acquire and release cost beyond the bare requests, on loopback. The endpoints run in processes of their
// own. Samples of both variants alternate, and ratios are of medians, so that results are stable on a noisy machine.
import { randomBytes } from "node:crypto";
import { Redlock } from "../dist/index.js";
import { startEndpointProcesses } from "./endpoint-process.mjs";

export async function print() {
  // One process each, as independent databases have: none waits for another's event loop.
  const servers = await startEndpointProcesses([0, 0, 0, 1_000]);
  const [first, second, third, slow] = servers;
  try {
    const { engine } = servers[0];
    console.log(
      `\nSpeed on loopback, ${engine}, Node ${process.versions.node}; medians of interleaved samples\n`,
    );
    await overhead([first]);
    await overhead([first, second, third]);
    await oneSlow([first, second, third], [first, second, slow]);
  } finally {
    await Promise.all(servers.map(({ stop }) => stop()));
  }
}

/** Compares acquire and release with the same two requests by bare fetch. */
async function overhead(servers) {
  const redlock = clientOf(servers);
  const name = `bench-${servers.length}`;
  const bare = async () => {
    const value = `t${randomBytes(16).toString("hex")}`;
    const key = `redlock:lock:{${name}}`;
    await all(servers, ["SET", key, value, "NX", "PX", 10_000]);
    await all(servers, ["DELEX", key, "IFEQ", value]);
  };
  const ours = async () => {
    const lock = await redlock.acquire(name);
    await lock.release();
  };
  const [bareMedian, ourMedian] = await compare([bare, ours], { warmUp: 500, samples: 2_000 });
  report(`acquire + release, ${servers.length} endpoint${servers.length > 1 ? "s" : ""}`, [
    ["bare fetch", bareMedian],
    ["redlock-edge", ourMedian],
  ]);
}

/** Compares acquires with three healthy endpoints and with one of them delayed by 1 s. */
async function oneSlow(healthy, slow) {
  const tasks = [healthy, slow].map((servers) => {
    const redlock = clientOf(servers);
    // Longer than the delay, so that the slow endpoint does answer and its connections are reused.
    return () => redlock.acquire(`bench-${randomBytes(8).toString("hex")}`, { timeout: 2_000 });
  });
  // Without the pause, requests to the slow endpoint would pile up.
  const [allHealthy, oneIsSlow] = await compare(tasks, { warmUp: 100, samples: 400, pause: 20 });
  report("acquire, one of 3 endpoints 1 s slow", [
    ["all healthy", allHealthy],
    ["one slow", oneIsSlow],
  ]);
}

function clientOf(servers) {
  return new Redlock({ endpoints: servers.map(({ url, token }) => ({ url, token, dialect: "upstash" })) });
}

function all(servers, command) {
  const body = JSON.stringify(command);
  return Promise.allSettled(
    servers.map(async ({ url, token }) => {
      const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
      return (await (await fetch(url, { method: "POST", headers, body })).json()).result;
    }),
  );
}

/** The median duration of each task in ms. Their samples alternate. */
async function compare(tasks, { warmUp, samples, pause }) {
  const times = tasks.map(() => []);
  for (let sample = -warmUp; sample < samples; sample += 1) {
    // In alternating order, so that neither always runs after the other.
    for (const index of sample % 2 ? [1, 0] : [0, 1]) {
      const start = performance.now();
      await tasks[index]();
      if (sample >= 0) times[index].push(performance.now() - start);
      if (pause) await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
  return times.map((list) => list.sort((a, b) => a - b)[list.length >> 1]);
}

function report(title, variants) {
  const [[, base], [, other]] = variants;
  const medians = variants.map(([name, ms]) => `${name} ${ms.toFixed(3)} ms`).join(", ");
  console.log(`${title.padEnd(40)}${medians}: × ${(other / base).toFixed(3)} (goal 1.05)`);
}
