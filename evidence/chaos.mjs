// Runs several client processes on real redis-servers with faults: `node evidence/chaos.mjs --minutes 5`. Prints counts and the
// result of each check of the package's guarantees, and fails if one is broken.
import { rm } from "node:fs/promises";
import process from "node:process";
import { readArguments, refuse } from "../tools/arguments.mjs";
import { bundleFile, load } from "../tools/load.mjs";

const usage = "node evidence/chaos.mjs [--minutes 1] [--seed n] [--endpoints 3] [--clients 4]";

const stop = new AbortController();
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, () => stop.abort());
// After an unexpected error, everything that was started is stopped.
process.on("uncaughtException", (error) => {
  console.error(error);
  stop.abort();
});

process.exitCode = 1;
try {
  const options = readOptions();
  const { findRedisServer } = await load("local/src/rest/redis/process.ts");
  if (findRedisServer()) await run(options);
  else skip();
} catch (error) {
  if (stop.signal.aborted) console.log("\nInterrupted.");
  else console.error(error);
}

async function run(options) {
  const { runChaos } = await load("evidence/chaos/main.ts");
  const { evaluateRun } = await load("evidence/chaos/report.ts");
  console.log(`\nchaos for ${options.seconds} s; a similar run: --seed ${options.seed}\n`);
  const program = await bundleFile("evidence/chaos/client.ts");
  const { text, passed } = await runChaos({ ...options, program, signal: stop.signal })
    .then(evaluateRun)
    .finally(() => rm(program, { force: true }));
  console.log(`${text}\n\n${passed ? "All hold." : "SOMETHING DOES NOT HOLD."}`);
  process.exitCode = passed ? 0 : 1;
}

function skip() {
  console.error("!!! redis-server is not on PATH: there is no chaos without it !!!");
  console.error("Install it: apt-get install redis-server, brew install redis, or https://redis.io/download");
  process.exitCode = process.env.CI === "true" ? 1 : 0;
}

function readOptions() {
  const number = { type: "string" };
  const values = readArguments({ minutes: number, seed: number, endpoints: number, clients: number }, usage);
  const options = {
    seconds: Number(values.minutes ?? 1) * 60,
    seed: Number(values.seed ?? Math.floor(Math.random() * 2 ** 31)),
    endpoints: Number(values.endpoints ?? 3),
    clients: Number(values.clients ?? 4),
  };
  const { seconds, seed, endpoints, clients } = options;
  const fits = [seed, endpoints, clients].every(Number.isInteger) && endpoints >= 3 && clients >= 2;
  if (!fits || !(seconds > 0)) refuse("at least 3 endpoints and 2 clients", usage);
  return options;
}
