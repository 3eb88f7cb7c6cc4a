// The README's webhook in workerd under load: `npm run bench -- load`. Beside it, a handler that sends the same requests by
// bare `fetch`.
import { randomBytes } from "node:crypto";
import { Agent, request } from "node:http";
import { Miniflare } from "miniflare";
import { bundle } from "../tools/bundle.mjs";
import { stripeDelivery } from "../tools/deliveries.mjs";
import { startEndpointProcesses } from "./endpoint-process.mjs";
import { printHead, printRow } from "./table.mjs";

const connections = 100;
const seconds = 10;
const turns = 3;

export async function print() {
  const servers = await startEndpointProcesses();
  const secret = `whsec_${randomBytes(32).toString("hex")}`;
  const worker = await startWorker(servers, secret);
  try {
    printHead(
      `The README's webhook in workerd, ${connections} connections for ${turns} × ${seconds} s, a fifth duplicates, three endpoints (${servers[0].engine}) on the same cores`,
      "",
      "answers a second",
      "p50",
      "p99",
      "not 200",
      "handled twice",
      "replayed",
    );
    const url = await worker.ready;
    const paths = ["/bare", "/redlock-edge"];
    // In turns, so that both meet the same machine, and neither pays for the start.
    const runs = paths.map(() => ({ times: [], statuses: [], twice: 0, replayed: 0 }));
    for (let turn = 0; turn < turns; turn += 1) {
      for (const [index, path] of paths.entries()) await load(new URL(path, url), secret, runs[index]);
    }
    for (const [index, path] of paths.entries()) {
      const { times, statuses, twice, replayed } = runs[index];
      times.sort((a, b) => a - b);
      const [p50, p99] = [0.5, 0.99].map(
        (share) => `${Math.round(times[Math.floor(times.length * share)])} ms`,
      );
      const failed = statuses.filter((status) => status !== 200).length;
      const rate = (times.length / seconds / turns).toFixed(0);
      printRow(path.slice(1), rate, p50, p99, failed, twice, replayed);
    }
  } finally {
    await worker.dispose();
    await Promise.all(servers.map(({ stop }) => stop()));
  }
}

async function startWorker(servers, secret) {
  const script = await bundle("bench/load/worker.js", {
    conditions: ["workerd", "worker", "browser"],
  });
  const bindings = { STRIPE_WEBHOOK_SECRET: secret };
  servers.forEach(({ url, token }, index) => {
    bindings[`UPSTASH_REDIS_REST_URL_${index + 1}`] = url;
    bindings[`UPSTASH_REDIS_REST_TOKEN_${index + 1}`] = token;
  });
  return new Miniflare({
    modules: true,
    script,
    compatibilityDate: "2026-04-01",
    host: "127.0.0.1",
    port: 0,
    bindings,
  });
}

/** Sends deliveries one after another on each connection, and adds up what came of them. Every fifth was sent before. */
async function load(url, secret, run) {
  const agent = new Agent({ keepAlive: true, maxSockets: connections });
  const handled = new Map();
  const end = performance.now() + seconds * 1_000;
  async function connection() {
    let last;
    for (let sent = 1; performance.now() < end; sent += 1) {
      if (sent % 5 !== 0 || !last) last = `evt_${randomBytes(8).toString("hex")}`;
      const { headers, body } = stripeDelivery(
        secret,
        "invoice.paid",
        { id: "in_1", object: "invoice" },
        last,
      );
      const start = performance.now();
      const { status, isReplay } = await post(agent, url, headers, body);
      run.times.push(performance.now() - start);
      run.statuses.push(status);
      if (isReplay) run.replayed += 1;
      else if (status === 200) handled.set(last, (handled.get(last) ?? 0) + 1);
    }
  }
  await Promise.all(Array.from({ length: connections }, connection));
  agent.destroy();
  run.twice += [...handled.values()].filter((count) => count > 1).length;
}

function post(agent, url, headers, body) {
  return new Promise((resolve, reject) => {
    const sending = request(url, { agent, method: "POST", headers }, (response) => {
      response.resume();
      response.on("end", () => {
        const isReplay = response.headers["idempotent-replayed"] === "true";
        resolve({ status: response.statusCode, isReplay });
      });
    });
    sending.on("error", reject);
    sending.end(body);
  });
}
