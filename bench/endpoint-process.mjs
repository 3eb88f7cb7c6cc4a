// A local endpoint in a process of its own, as independent databases have: none waits for another's event loop.
import { fork } from "node:child_process";
import { fileURLToPath } from "node:url";
import { start } from "../local/dist/index.js";

/** Starts one for each of these delays, the ms before it executes a request. */
export function startEndpointProcesses(delays) {
  return Promise.all(delays.map((delay) => startEndpointProcess(delay)));
}

/** Starts it, with a `redis-server` if there is one. */
async function startEndpointProcess(delay) {
  const child = fork(fileURLToPath(import.meta.url), ["endpoint", String(delay)]);
  const { url, token, redisUrl } = await new Promise((resolve, reject) => {
    child.once("exit", reject);
    child.once("message", resolve);
  });
  child.removeAllListeners("exit");
  return {
    url,
    token,
    engine: redisUrl ? "real redis-servers" : "embedded engine",
    stop: () =>
      new Promise((resolve) => {
        child.once("exit", resolve);
        child.send("stop");
      }),
  };
}

if (process.argv[2] === "endpoint" && process.send) {
  const local = await start({ count: 1 });
  const [endpoint] = local.endpoints;
  const delay = Number(process.argv[3]);
  if (delay > 0) endpoint.faults.add({ fault: "delay", ms: delay });
  process.once("message", async () => {
    await local.close();
    process.disconnect();
  });
  // Also when the process that started it was killed.
  process.once("disconnect", () => local.close());
  const { url, token, redisUrl } = endpoint;
  process.send({ url, token, redisUrl });
}
