// What the package is for, on real input: `npm run demo`. GitHub's own example webhooks, Standard Webhooks and
// events of Stripe, signed by their senders' own libraries, are sent to the Worker (in workerd, with D1), each
// several times at once, while its three Redis endpoints are killed, slowed down and robbed of their replies. Then
// it is looked up what took effect.
// `npm run demo -- --keep` goes on running afterwards, so that the page can be looked at.
import { randomUUID } from "node:crypto";
import { once, setMaxListeners } from "node:events";
import process from "node:process";
import { setTimeout as sleep } from "node:timers/promises";
import { githubDelivery, githubExamples, standardDelivery, stripeDelivery } from "./deliveries.mjs";
import { checkAll } from "./demo-checks.mjs";
import { planFaults } from "./demo-faults.mjs";
import { phaseHead, phaseLine, printChecks, table } from "./demo-report.mjs";
import { deliver, deliverAll, forge, PhaseCounts } from "./demo-senders.mjs";
import { load } from "./load.mjs";
import { randomSecrets, startWorker } from "./local-worker.mjs";

const copies = 4;
const atOnce = 4;

const stop = new AbortController();
const { signal } = stop;
// Every request under way listens to it.
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
  if (process.argv.includes("--keep")) await keep(worker.url);
} catch (error) {
  if (!signal.aborted) throw error;
  console.log("\nInterrupted.");
} finally {
  await Promise.all(closers.map((close) => close()));
}

async function start() {
  const { startEndpoints } = await load("src/dev/index.ts");
  const local = await startEndpoints({ count: 3 });
  closers.push(local.close);
  const secrets = randomSecrets();
  const worker = await startWorker({ bindings: { ...secrets, ...local.env() } });
  closers.push(worker.close);
  console.log("redlock-edge: webhooks that act exactly once, while Redis is in trouble\n");
  if (local.engine === "redis") {
    console.log("  Redis    3 redis-server processes, each behind an endpoint that speaks Upstash's REST");
  } else {
    console.log("  Redis    !!! redis-server is not on PATH: the EMBEDDED ENGINE stands in for it !!!");
  }
  console.log("  Worker   workerd, without nodejs_compat, with a D1 database");
  return [local, worker, secrets];
}

async function demonstrate(local, worker, secrets) {
  const { endpoints } = local;
  const deliveries = await chooseDeliveries(secrets);
  const of = (name) => deliveries.filter(({ provider }) => provider === name).length;
  console.log(
    `  Events   ${of("github")} of GitHub's own examples, one of each kind; ` +
      `${of("standard-webhooks")} Standard Webhooks; ${of("stripe")} of Stripe`,
  );
  console.log(`  Senders  ${copies} copies of each at once, ${atOnce} events at once, sent again at a 503\n`);

  const answers = new Map();
  const onAnswer = ({ key }, body) => answers.set(key, [...(answers.get(key) ?? []), body]);
  const all = [];
  const phase = async (name, list, work) => {
    signal.throwIfAborted();
    const counts = new PhaseCounts(name);
    all.push(counts);
    const start = performance.now();
    const result = await work(counts);
    console.log(phaseLine(counts, list.length, (performance.now() - start) / 1000));
    return result;
  };

  console.log(phaseHead());
  const queue = [...deliveries];
  const measured = queue.splice(0, 12);
  const cost = await phase("one by one, then again", measured, (counts) =>
    measureCost(local, worker, measured, counts, onAnswer),
  );

  const faults = planFaults(endpoints);
  const share = Math.ceil(queue.length / faults.phases.length);
  for (const { name, onProgress, after } of faults.phases) {
    const list = queue.splice(0, share);
    await phase(name, list, async (counts) => {
      await deliverAll(worker.url, list, { counts, signal, atOnce, copies, onProgress, onAnswer });
      await after();
    });
  }

  const forgedRequests = await phase("bad signatures alone", [], async (counts) => {
    // What a fault has held up for a whole timeout is cleaned up after that.
    await quiet(endpoints, 1_500);
    const before = requestsOf(endpoints);
    for (const delivery of deliveries.slice(0, 40)) await forge(worker.url, delivery, counts);
    await quiet(endpoints, 100);
    return requestsOf(endpoints) - before;
  });

  await phase("later: all of them again", deliveries, (counts) => {
    const onProgress = async () => undefined;
    return deliverAll(worker.url, deliveries, { counts, signal, atOnce, copies: 1, onProgress, onAnswer });
  });

  console.log(legend);
  console.log(`${costTable(cost)}`);
  console.log(
    "  (as Upstash bills them, in the dialect for plain Redis, with scripts where Upstash has commands)\n",
  );
  console.log(`${await rowTable(worker.database)}\n`);

  const evidence = { deliveries, answers, counts: all, forgedRequests, faultHits: faults.hits };
  const { checks, providers } = await checkAll(worker.database, evidence);
  console.log(`${providerTable(providers)}\n`);
  return printChecks(checks);
}

/** An example of every kind of event that GitHub has, and a dozen each of the others, in a mixed order. */
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
  // A stride that has no divisor in common with the length visits each once.
  const all = [...fromGitHub, ...standard, ...fromStripe];
  const stride = [7, 11, 13, 17].find((candidate) => all.length % candidate !== 0);
  return all.map((_, index) => all[(index * stride) % all.length]);
}

/** Requests and billed commands of first deliveries and of duplicates, one at a time on healthy endpoints. */
async function measureCost({ endpoints }, { url }, [warmUp, ...deliveries], counts, onAnswer) {
  // The first one also brings the scripts to Redis.
  onAnswer(warmUp, await deliver(url, warmUp, counts, signal));
  const cost = [];
  for (const kind of ["first delivery", "duplicate"]) {
    await quiet(endpoints, 40);
    for (const { log } of endpoints) log.reset();
    for (const delivery of deliveries) {
      const body = await deliver(url, delivery, counts, signal);
      if (body !== undefined) onAnswer(delivery, body);
      await quiet(endpoints, 40);
    }
    const billed = endpoints.reduce((sum, { log }) => sum + log.billed, 0);
    cost.push({
      kind,
      requests: requestsOf(endpoints) / deliveries.length,
      billed: billed / deliveries.length,
    });
  }
  return cost;
}

function requestsOf(endpoints) {
  return endpoints.reduce((sum, { log }) => sum + log.requests, 0);
}

/** Waits until no request to Redis has come for `ms`: what goes on after an answer is over then. */
async function quiet(endpoints, ms) {
  let last = -1;
  for (let since = performance.now(); performance.now() - since < ms && !signal.aborted; await sleep(10)) {
    const now = requestsOf(endpoints);
    if (now !== last) since = performance.now();
    last = now;
  }
}

function costTable(cost) {
  return table(
    ["on healthy endpoints", "requests", "billed commands", "per endpoint"],
    cost.map(({ kind, requests, billed }) => [
      kind,
      requests.toFixed(1),
      billed.toFixed(1),
      `${(requests / 3).toFixed(1)} and ${(billed / 3).toFixed(1)}`,
    ]),
  );
}

function providerTable(providers) {
  const columns = ["events", "sent", "effects", "duplicates", "refused"];
  return table(
    ["provider", ...columns],
    providers.map((tally) => [tally.provider, ...columns.map((column) => tally[column])]),
  );
}

async function rowTable(database) {
  const tables = ["effects", "entities", "deliveries"];
  const results = await database.batch(
    tables.map((name) => database.prepare(`SELECT count(*) AS count FROM ${name}`)),
  );
  return table(
    ["rows in D1", "count"],
    tables.map((name, index) => [name, results[index].results[0].count]),
  );
}

async function keep(url) {
  console.log(`\nThe page: ${url}/   Ctrl-C ends it.`);
  if (!signal.aborted) await once(signal, "abort");
}
