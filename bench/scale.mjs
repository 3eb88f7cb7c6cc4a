// Many at once: `npm run bench -- scale`. Each figure is of a process of its own, all against the same real servers.
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { startEndpointProcesses } from "./endpoint-process.mjs";
import { versioned } from "./peers/installed.mjs";
import { printHead, printRow } from "./table.mjs";

const run = promisify(execFile);
const program = fileURLToPath(new URL("scale/run.mjs", import.meta.url));
const mine = "redlock-edge";
const peers = [mine, "@upstash/lock", "a loop over the SDK", "a loop over the SDK, no batches"];

export async function print() {
  const servers = await startEndpointProcesses();
  const one = servers.slice(0, 1);
  try {
    console.log(
      `\nMany at once, Node ${process.versions.node}, ${servers[0].engine}, ${versioned("@upstash/lock")}`,
    );
    await table("5 000 different locks at once, acquired, then released; medians of 5, in turns", () =>
      medians([
        ...peers.map((who) => [`${who}, 1 server`, { what: "different", who, n: 5_000, servers: one }]),
        [`${mine}, 3 servers`, { what: "different", who: mine, n: 5_000, servers }],
      ]),
    );
    await table("Growth: different locks at once, 3 servers; medians of 5, in turns", () =>
      medians(
        [1_000, 2_000, 4_000, 8_000].map((n) => [`${n} locks`, { what: "different", who: mine, n, servers }]),
      ),
    );
    await table("1 000 contenders for one lock, 1 server", () =>
      single(peers.slice(0, 2), { what: "contenders", n: 1_000, servers: one }),
    );
    await table("100 000 cycles, 20 at a time, 1 server", () =>
      single(peers.slice(0, 3), { what: "cycles", n: 100_000, servers: one }),
    );
    await printHeld(one);
  } finally {
    await Promise.all(servers.map(({ stop }) => stop()));
  }
}

/** 10 000 locks that are extended until they are released. */
async function printHeld(servers) {
  const options = { autoExtend: true };
  const { heap, timers, requestsPerRenewal, failed } = await measure({
    what: "held",
    who: mine,
    n: 10_000,
    servers,
    options,
  });
  const title = "10 000 locks held, acquired in the course of 20 s, with `autoExtend`, 1 server";
  printHead(title, "heap", "timers", "requests per renewal", "lost");
  printRow(`${heap.toFixed(0)} MB`, timers, requestsPerRenewal.toFixed(3), failed);
}

async function table(title, rowsOf) {
  const rows = await rowsOf();
  printHead(title, "", "time", "CPU of the client", "most memory", "requests", "failures");
  for (const [name, { ms, cpu, memory, requests, failed }] of rows) {
    const times = [`${(ms / 1e3).toFixed(2)} s`, `${(cpu / 1e3).toFixed(2)} s`, `${memory.toFixed(0)} MB`];
    printRow(name, ...times, requests, failed);
  }
}

async function single(names, what) {
  const rows = [];
  for (const who of names) rows.push([who, await measure({ ...what, who })]);
  return rows;
}

/** Each by its median time. In turns, so that what slows the machine down for a while slows all of them. */
async function medians(rows) {
  const results = rows.map(() => []);
  for (let time = 0; time < 5; time += 1) {
    for (const [index, [, what]] of rows.entries()) results[index].push(await measure(what));
  }
  return rows.map(([name], index) => [name, results[index].sort((a, b) => a.ms - b.ms)[2]]);
}

/** @returns what run.mjs prints */
async function measure(what) {
  const servers = what.servers.map(({ url, token }) => ({ url, token }));
  const { stdout } = await run(process.execPath, [
    "--expose-gc",
    program,
    JSON.stringify({ ...what, servers }),
  ]);
  return JSON.parse(stdout);
}
