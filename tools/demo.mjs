// Demonstrates the package on real input: `npm run demo`. Sends GitHub's own example webhooks, Standard Webhooks and
// events of Stripe, signed by their senders' own libraries, to the Worker (in workerd, with D1). Each is sent several
// times concurrently, while the three Redis endpoints are killed, slowed down, or lose replies; and once the Worker is
// killed between an effect and its result. Then it checks in the database what took effect.
// `npm run demo -- --keep` keeps running afterwards, so that you can look at the page. `npm run demo -- --durable` has three
// lock servers of `redlock-edge-server` instead of Redis: no redis-server is started, and workerd is killed in its place.
import { randomUUID } from "node:crypto";
import { once, setMaxListeners } from "node:events";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { githubDelivery, githubExamples, standardDelivery, stripeDelivery } from "./deliveries.mjs";
import { checkAll } from "./demo/checks.mjs";
import { crashAfterEffect } from "./demo/crash.mjs";
import { planFaults } from "./demo/faults.mjs";
import { phaseHead, phaseLine, printChecks } from "./demo/report.mjs";
import { deliverAll, forge, PhaseCounts } from "./demo/senders.mjs";
import { load } from "./load.mjs";
import { randomSecrets, startWorker } from "./local-worker.mjs";

const copies = 4;
const atOnce = 4;

const isDurable = process.argv.includes("--durable");
const stop = new AbortController();
const { signal } = stop;
// Every request under way adds a listener to this signal; Node warns of more than ten.
setMaxListeners(0, signal);
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(name, () => stop.abort());
process.on("unhandledRejection", (error) => {
  console.error(error);
  stop.abort();
});

const legend = `
  sent: HTTP requests to the Worker. refused: bad signatures. retried: answered 503 (busy, or no
  quorum) or 500, and sent again with back-off. p50, p99: ms, of all answers to genuine requests.
`;

const began = performance.now();
const closers = [];
process.exitCode = 1;
try {
  const [local, worker, secrets] = await start();
  const holds = await demonstrate(local, worker, secrets);
  const seconds = ((performance.now() - began) / 1000).toFixed(1);
  console.log(`\n${holds ? "All checks hold." : "SOMETHING DOES NOT HOLD."} It took ${seconds} s.`);
  process.exitCode = holds ? 0 : 1;
  if (process.argv.includes("--keep")) await keep(worker.url, secrets);
} catch (error) {
  if (!signal.aborted) throw error;
  console.log("\nInterrupted.");
} finally {
  await Promise.all(closers.map((close) => close()));
}

async function start() {
  const local = await startEndpoints();
  closers.push(local.close);
  const secrets = randomSecrets();
  const worker = await startWorker({ bindings: { ...secrets, ...local.env() } });
  closers.push(worker.close);
  console.log("redlock-edge: webhooks that act exactly once, while Redis is in trouble\n");
  if (isDurable) {
    console.log(
      "  Locks    no Redis: 3 lock servers, Durable Objects, each in a workerd of its own, with its storage",
    );
  } else if (local.engine === "redis") {
    console.log("  Redis    3 redis-server processes, each behind an endpoint that speaks Upstash's REST");
  } else {
    console.log("  Redis    !!! redis-server is not on PATH: the EMBEDDED ENGINE stands in for it !!!");
  }
  console.log("  Worker   workerd, without nodejs_compat, with a D1 database");
  return [local, worker, secrets];
}

async function startEndpoints() {
  if (isDurable) return (await load("tools/lock-servers.ts")).startLockServers();
  return (await load("local/src/index.ts")).start({ count: 3 });
}

/**
 * The state of a run: what it sends to, and what came of it.
 *
 * @typedef {object} Demo
 * @property {any} local the endpoints
 * @property {import("./local-worker.mjs").LocalWorker} worker
 * @property {Map<string, string[]>} answers bodies of all successes, by delivery key
 * @property {PhaseCounts[]} counts of every phase
 */

async function demonstrate(local, worker, secrets) {
  const deliveries = await chooseDeliveries(secrets);
  printDeliveries(deliveries);
  const demo = { local, worker, answers: new Map(), counts: [] };

  console.log(phaseHead());
  const last = deliveries.at(-1);
  const faultHits = await deliverWithFaults(demo, deliveries.slice(0, -1));
  const bindings = { ...secrets, ...local.env() };
  const killed = await runPhase(demo, "Worker killed after effect", [last], (counts) =>
    crashAfterEffect({ worker, local, bindings }, last, sending(demo, counts)),
  );
  faultHits["Worker killed after an effect"] = killed ? 1 : 0;
  const forgedRequests = await runPhase(demo, "bad signatures alone", [], (counts) =>
    sendForged(demo, deliveries.slice(0, 40), counts),
  );
  await runPhase(demo, "later: all of them again", deliveries, (counts) =>
    deliverAll(worker.url, deliveries, { ...sending(demo, counts), copies: 1 }),
  );

  console.log(legend);
  const { answers, counts } = demo;
  const evidence = { deliveries, answers, counts, forgedRequests, faultHits };
  return printChecks(await checkAll(worker.database, evidence));
}

function printDeliveries(deliveries) {
  const countOf = (name) => deliveries.filter(({ provider }) => provider === name).length;
  console.log(
    `  Events   ${countOf("github")} of GitHub's own examples, one of each kind; ` +
      `${countOf("standard-webhooks")} Standard Webhooks; ${countOf("stripe")} of Stripe`,
  );
  console.log(`  Senders  ${copies} copies of each at once, ${atOnce} events at once, sent again at a 503\n`);
}

/** Runs one phase and prints its line. `work` counts into the `PhaseCounts` that it gets. */
async function runPhase(demo, name, deliveries, work) {
  signal.throwIfAborted();
  const counts = new PhaseCounts(name);
  demo.counts.push(counts);
  const start = performance.now();
  const result = await work(counts);
  console.log(phaseLine(counts, deliveries.length, (performance.now() - start) / 1000));
  return result;
}

/** The options of `deliverAll` that are the same in every phase. */
function sending({ answers }, counts) {
  const onAnswer = ({ key }, body) => answers.set(key, [...(answers.get(key) ?? []), body]);
  return { counts, signal, atOnce, onAnswer };
}

/** Sends an equal share of the deliveries in each phase with faults. Returns how many requests each fault hit. */
async function deliverWithFaults(demo, deliveries) {
  const { phases, hits } = planFaults(demo.local.endpoints);
  const share = Math.ceil(deliveries.length / phases.length);
  for (const [index, { name, onProgress, after }] of phases.entries()) {
    const part = deliveries.slice(index * share, (index + 1) * share);
    await runPhase(demo, name, part, async (counts) => {
      await deliverAll(demo.worker.url, part, { ...sending(demo, counts), copies, onProgress });
      await after();
    });
  }
  return hits;
}

/** Sends deliveries with bad signatures. Returns how many requests to Redis they caused. */
async function sendForged({ local, worker }, deliveries, counts) {
  // A request that a fault delayed for a whole timeout is rolled back after that.
  await quiet(local.endpoints, 1_500);
  const before = requestsOf(local.endpoints);
  for (const delivery of deliveries) await forge(worker.url, delivery, counts);
  await quiet(local.endpoints, 100);
  return requestsOf(local.endpoints) - before;
}

/** One example of each of GitHub's events, and a dozen each of the others, in mixed order. */
async function chooseDeliveries({ GITHUB_WEBHOOK_SECRET, STANDARD_WEBHOOKS_SECRET, STRIPE_WEBHOOK_SECRET }) {
  const fromGitHub = await Promise.all(
    githubExamples().map(({ name, examples: [payload] }) =>
      githubDelivery(GITHUB_WEBHOOK_SECRET, name, payload, randomUUID()),
    ),
  );
  const types = ["invoice.created", "invoice.finalized", "invoice.paid"];
  const standard = Array.from({ length: 12 }, (_, index) =>
    standardDelivery(
      STANDARD_WEBHOOKS_SECRET,
      {
        type: types[index % 3],
        timestamp: new Date().toISOString(),
        data: { id: `inv_${Math.floor(index / 3)}` },
      },
      `msg_${randomUUID()}`,
    ),
  );
  const steps = ["created", "processing", "succeeded"];
  const fromStripe = Array.from({ length: 12 }, (_, index) =>
    stripeDelivery(
      STRIPE_WEBHOOK_SECRET,
      `payment_intent.${steps[index % 3]}`,
      { id: `pi_${Math.floor(index / 3)}`, object: "payment_intent", amount: 4_200, currency: "eur" },
      `evt_${randomUUID().replaceAll("-", "")}`,
    ),
  );
  // A stride that is coprime to the length visits each delivery once.
  const all = [...fromGitHub, ...standard, ...fromStripe];
  const stride = [7, 11, 13, 17].find((candidate) => all.length % candidate !== 0);
  return all.map((_, index) => all[(index * stride) % all.length]);
}

function requestsOf(endpoints) {
  return endpoints.reduce((sum, { log }) => sum + log.requests, 0);
}

/** Waits until no request to Redis has arrived for `ms`, so that work after an answer has ended. */
async function quiet(endpoints, ms) {
  let last = -1;
  for (let since = performance.now(); performance.now() - since < ms && !signal.aborted; await sleep(10)) {
    const now = requestsOf(endpoints);
    if (now !== last) since = performance.now();
    last = now;
  }
}

async function keep(url, { JOURNAL_SECRET }) {
  console.log(`\nThe page: ${url}/   Name: journal   Password: ${JOURNAL_SECRET}   Ctrl-C ends it.`);
  if (!signal.aborted) await once(signal, "abort");
}
