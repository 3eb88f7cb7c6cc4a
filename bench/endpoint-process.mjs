// A local endpoint in a process of its own, as independent databases have: none waits for another's event loop.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { start } from "../local/dist/index.js";

// What a client sends about its connection, and this file to count.
const housekeeping = /^cmdstat_(info|hello|auth|select|command|client\b)/;

/**
 * Starts one for each of these delays, the ms before it executes a request.
 *
 * @param {readonly number[]} [delays]
 */
export function startEndpointProcesses(delays = [0, 0, 0]) {
  return Promise.all(delays.map((delay) => startEndpointProcess(delay)));
}

/**
 * Starts it, with a `redis-server` if there is one.
 *
 * @returns an endpoint with `billed()`, the commands that Upstash would bill so far, and `executed()`, the commands that
 * its Redis has executed so far, those of scripts included
 */
async function startEndpointProcess(delay) {
  const child = fork(fileURLToPath(import.meta.url), ["endpoint", String(delay)]);
  const answer = () =>
    new Promise((resolve, reject) => {
      child.once("exit", reject);
      child.once("message", (message) => {
        child.off("exit", reject);
        resolve(message);
      });
    });
  const ask = (question) => {
    const answered = answer();
    child.send(question);
    return answered;
  };
  const { url, token, redisUrl } = await answer();
  return {
    url,
    token,
    redisUrl,
    engine: redisUrl ? "real redis-servers" : "embedded engine",
    billed: () => ask("billed"),
    executed: () => ask("executed"),
    stop: () =>
      new Promise((resolve) => {
        child.once("exit", resolve);
        child.send("stop");
      }),
  };
}

/** The commands that a Redis has executed, by its own statistics, those inside of scripts included. */
async function executedBy(endpoint) {
  const lines = String(await endpoint.execute(["INFO", "commandstats"])).split(/\r?\n/);
  return lines
    .filter((line) => line.startsWith("cmdstat_") && !housekeeping.test(line))
    .reduce((sum, line) => sum + Number(/calls=(\d+)/.exec(line)[1]), 0);
}

if (process.argv[2] === "endpoint" && process.send) {
  const local = await start({ count: 1 });
  const [endpoint] = local.endpoints;
  const delay = Number(process.argv[3]);
  if (delay > 0) endpoint.faults.add({ fault: "delay", ms: delay });
  process.on("message", async (request) => {
    if (request === "billed") return process.send(endpoint.log.billed);
    if (request === "executed") return process.send(await executedBy(endpoint));
    await local.close();
    process.disconnect();
  });
  // Also when the process that started it was killed.
  process.once("disconnect", () => local.close());
  const { url, token, redisUrl } = endpoint;
  process.send({ url, token, redisUrl });
}
