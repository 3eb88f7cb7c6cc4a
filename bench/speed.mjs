// How much an acquire and release cost beyond the bare requests, on loopback. The endpoints run in a process of
// their own. Samples of what is compared take turns, and ratios are of medians: this holds on a noisy machine.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { Redlock } from "../dist/index.js";

const token = "bench";

export async function print() {
  // Each in a process of its own, as independent databases are: none waits for another's event loop.
  const servers = await Promise.all([[], [], [], ["--delay", "1=1000"]].map(endpoint));
  const [first, second, third, slow] = servers.map(({ url }) => url);
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

/** Acquire and release beside the same two requests by bare fetch. */
async function overhead(urls) {
  const redlock = new Redlock({ endpoints: urls.map((url) => ({ url, token, dialect: "upstash" })) });
  const name = `bench-${urls.length}`;
  const bare = async () => {
    const value = `t${randomBytes(16).toString("hex")}`;
    const key = `redlock:lock:{${name}}`;
    await all(urls, ["SET", key, value, "NX", "PX", 10_000]);
    await all(urls, ["DELEX", key, "IFEQ", value]);
  };
  const ours = async () => {
    const lock = await redlock.acquire(name);
    await lock.release();
  };
  const [a, b] = await compare([bare, ours], { warmUp: 500, samples: 2_000 });
  report(
    `acquire + release, ${urls.length} endpoint${urls.length > 1 ? "s" : ""}`,
    "bare fetch",
    a,
    "redlock-edge",
    b,
  );
}

/** An acquire when one of three endpoints is slow by 1 s. */
async function oneSlow(healthy, slow) {
  const [a, b] = [healthy, slow].map((urls) => {
    const redlock = new Redlock({ endpoints: urls.map((url) => ({ url, token, dialect: "upstash" })) });
    // Longer than the endpoint is slow, so that it does answer, and its connections are used again.
    return () => redlock.acquire(`bench-${randomBytes(8).toString("hex")}`, { timeout: 2_000 });
  });
  // The pause keeps requests to the slow endpoint from piling up.
  const medians = await compare([a, b], { warmUp: 100, samples: 400, pause: 20 });
  report("acquire, one of 3 endpoints 1 s slow", "all healthy", medians[0], "one slow", medians[1]);
}

function all(urls, command) {
  const body = JSON.stringify(command);
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  return Promise.allSettled(
    urls.map(async (url) => (await (await fetch(url, { method: "POST", headers, body })).json()).result),
  );
}

/** Medians in ms of what takes turns. */
async function compare(tasks, { warmUp, samples, pause }) {
  const times = tasks.map(() => []);
  for (let sample = -warmUp; sample < samples; sample += 1) {
    // In alternating order, so that none always runs in another's wake.
    for (const index of sample % 2 ? [1, 0] : [0, 1]) {
      const start = performance.now();
      await tasks[index]();
      if (sample >= 0) times[index].push(performance.now() - start);
      if (pause) await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }
  return times.map((list) => list.sort((a, b) => a - b)[list.length >> 1]);
}

function report(what, nameA, a, nameB, b) {
  const side = (name, ms) => `${name} ${ms.toFixed(3)} ms`;
  console.log(`${what.padEnd(40)}${side(nameA, a)}, ${side(nameB, b)}: × ${(b / a).toFixed(3)} (goal 1.05)`);
}

/** A local endpoint in a process of its own. */
async function endpoint(flags) {
  const args = ["dist/dev/cli.js", "dev", "--count", "1", "--token", token, ...flags];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let text = "";
  await new Promise((resolve, reject) => {
    child.once("exit", () => reject(new Error("a local endpoint did not start")));
    child.stdout.on("data", (chunk) => {
      text += chunk;
      if (/TOKEN_1=.*\n/.test(text)) resolve();
    });
  });
  const [, url] = /URL_1="(.*)"/.exec(text);
  const engine = /in front of Redis/.test(text) ? "real redis-servers" : "embedded engine";
  const stop = () =>
    new Promise((resolve) => {
      child.once("exit", resolve);
      child.kill("SIGTERM");
    });
  return { url, engine, stop };
}
