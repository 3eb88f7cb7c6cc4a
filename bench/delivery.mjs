// Measures a webhook's delivery through a Worker in workerd, with endpoints 20 ms away: run and lock as separate operations,
// and together. The samples alternate, so that both ways meet the same machine.
import { createHmac, randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { Miniflare } from "miniflare";
import { bundle } from "../tools/bundle.mjs";
import { percentile } from "../tools/demo/report.mjs";
import { load } from "../tools/load.mjs";
import { printHead, printRow } from "./table.mjs";

const samples = 60;
const distance = 20;
const secret = "a secret of this run";

export async function print() {
  for (const dialect of ["redis", "upstash"]) {
    const title = `A delivery in workerd, three endpoints ${distance} ms away, dialect ${dialect}, ${samples} samples`;
    printHead(title, "", "requests", "commands", "p50");
    const rows = await measureGain(dialect);
    for (const { way, kind, requests, commands, p50 } of rows) {
      printRow(`${kind}, ${way}`, requests, commands, `${p50.toFixed(0)} ms`);
    }
    const [separate, together] = ["separate", "together"].map(
      (way) => rows.find((row) => row.way === way && row.kind === "first").p50,
    );
    console.log(`\nfirst delivery, together / separate: ${(together / separate).toFixed(2)}`);
  }
}

/**
 * A first delivery and a duplicate of it, by both ways: requests and commands for each endpoint, and p50 in ms. The
 * endpoints are `distance` ms away: a delay before each answer.
 */
async function measureGain(dialect) {
  const { start } = await load("local/src/index.ts");
  const local = await start({ count: 3 });
  const worker = await startGainWorker({ ...local.env(), SECRET: secret, DIALECT: dialect });
  try {
    const url = await worker.ready;
    const found = new Map();
    // The first of each way sends the scripts, and is not counted.
    for (let sample = 0; sample <= samples; sample += 1) {
      for (const way of ["separate", "together"]) {
        const delivery = deliveryOf(new URL(way, url), `entity-${sample}`);
        for (const kind of ["first", "duplicate"]) {
          const cost = await measure(local, delivery);
          if (sample > 0) found.set(`${way} ${kind}`, [...(found.get(`${way} ${kind}`) ?? []), cost]);
        }
      }
    }
    return [...found].map(([name, costs]) => {
      const [way, kind] = name.split(" ");
      const middle = (field) =>
        percentile(
          costs.map((cost) => cost[field]),
          0.5,
        );
      return { way, kind, requests: middle("requests"), commands: middle("commands"), p50: middle("took") };
    });
  } finally {
    await worker.dispose();
    await local.close();
  }
}

/** Sends it, and counts when the requests have ended that its answer did not wait for. */
async function measure(local, send) {
  for (const { faults, log } of local.endpoints) {
    faults.add({ fault: "delay-reply", ms: distance });
    log.reset();
  }
  const start = performance.now();
  const { ok, status } = await send();
  const took = performance.now() - start;
  await sleep(2 * distance);
  for (const { faults } of local.endpoints) faults.clear();
  if (!ok) throw new Error(`the Worker answered ${status}`);
  const logs = local.endpoints.map(({ log }) => log);
  const mean = (field) => logs.reduce((sum, log) => sum + log[field], 0) / logs.length;
  return { took, requests: mean("requests"), commands: mean("billed") };
}

/** A function that sends one delivery, as GitHub signs it, as often as it is called. */
function deliveryOf(url, entity) {
  const body = JSON.stringify({ entity: `${url.pathname}:${entity}`, id: randomUUID() });
  const headers = {
    "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
  };
  return () => fetch(url, { method: "POST", body, headers });
}

async function startGainWorker(bindings) {
  const script = await bundle("bench/delivery/worker.ts");
  return new Miniflare({
    modules: true,
    script,
    compatibilityDate: "2026-04-01",
    bindings,
    host: "127.0.0.1",
    port: 0,
    cf: false,
    telemetry: { enabled: false },
  });
}
