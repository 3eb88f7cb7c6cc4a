// Measures this package and others side by side, on the same real redis-servers in one run: `npm run bench -- peers`. Those
// over HTTP talk to a local endpoint in front of the server that the others reach by a socket.
import { startEndpointProcesses } from "./endpoint-process.mjs";
import { contention, hold, waiters } from "./peers/contention.mjs";
import { versioned } from "./peers/installed.mjs";
import { locks } from "./peers/locks.mjs";
import { peerSizes } from "./peers/sizes.mjs";
import { uncontended } from "./peers/uncontended.mjs";
import { kilobytes } from "./size.mjs";
import { printHead, printRow } from "./table.mjs";

export async function print() {
  const servers = await startEndpointProcesses();
  try {
    if (!servers[0].redisUrl) throw new Error("redis-server is not on PATH, and the others need one");
    const sets = [servers.slice(0, 1), servers];
    const free = [];
    for (const set of sets) free.push(...(await uncontended(locks, set)));
    printUncontended(free);
    const contended = [];
    for (const set of sets) contended.push(...(await contention(locks, set)));
    printContention(contended);
    await printSizes();
  } finally {
    await Promise.all(servers.map(({ stop }) => stop()));
  }
}

function printUncontended(results) {
  printHead(
    `Acquire and release of a free lock, Node ${process.versions.node}; medians of interleaved samples. "Bare": the same requests without the library`,
    "",
    "over",
    "servers",
    "acquire + release",
    "bare",
    "ratio",
    "commands per server",
  );
  for (const { lock, count, ms, bare, commands } of results) {
    const times = [`${ms.toFixed(3)} ms`, `${bare.toFixed(3)} ms`, (ms / bare).toFixed(2)];
    printRow(label(lock), overOf(lock), count, ...times, commands.toFixed(1));
  }
}

function printContention(results) {
  printHead(
    `${waiters} waiters start at once and hold the lock for ${hold} ms each; medians of 3 runs`,
    "",
    "over",
    "servers",
    "total / ideal",
    "commands per grant and server",
    "most holders at once",
    "served",
  );
  for (const { lock, count, total, commands, mostHolders, served } of results) {
    const share = served === waiters ? "all" : `${served} of ${waiters} in 30 s`;
    printRow(label(lock), overOf(lock), count, total.toFixed(2), commands.toFixed(1), mostHolders, share);
  }
}

async function printSizes() {
  const title = "A program's bundle with the library and the client that it needs, minified and gzipped";
  printHead(title, "import", "size");
  for (const { name, bytes } of await peerSizes()) printRow(`\`${name}\``, kilobytes(bytes));
}

function label({ name, of }) {
  return of === "redlock-edge" ? name : `${versioned(of)}${name.slice(of.length)}`;
}

function overOf({ transport }) {
  return transport === "http" ? "HTTP" : "sockets";
}
