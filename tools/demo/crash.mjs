import { once } from "node:events";
import { createServer, request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { send } from "../deliveries.mjs";
import { deliver } from "./senders.mjs";

/**
 * Kills the Worker after a delivery's effect is in the database and before Redis knows of it, and starts it again. Then its
 * sender tries until it succeeds.
 *
 * @param {object} stage
 * @param {import("../local-worker.mjs").LocalWorker} stage.worker
 * @param {any} stage.local the endpoints
 * @param {Record<string, string>} stage.bindings the Worker's bindings
 * @param {import("../deliveries.mjs").Delivery} delivery
 * @param {object} sender
 * @param {import("./senders.mjs").PhaseCounts} sender.counts
 * @param {AbortSignal} sender.signal
 * @param {(delivery: import("../deliveries.mjs").Delivery, body: string) => void} sender.onAnswer
 * @returns {Promise<boolean>} whether the Worker was killed like that
 *
 * @example
 * const killed = await crashAfterEffect({ worker, local, bindings }, delivery, { counts, signal, onAnswer });
 */
export async function crashAfterEffect({ worker, local, bindings }, delivery, { counts, signal, onAnswer }) {
  const gates = await openGates(local.endpoints, () => hasEffect(worker.database, delivery));
  let killed;
  try {
    await worker.restart({ ...bindings, ...gates.env });
    counts.sent += 1;
    // Nobody answers it. The timeout ends a run in which nothing is held back.
    const limited = AbortSignal.any([signal, AbortSignal.timeout(20_000)]);
    const lost = send(worker.url, delivery, limited).catch(() => undefined);
    killed = await Promise.race([gates.held.then(() => true), lost.then(() => false)]);
    await worker.restart(bindings);
    await lost;
  } finally {
    gates.close();
  }
  // Real senders pause for minutes. The key of the killed run is free after its lease of 10 s.
  await sleep(8_000, undefined, { signal });
  const body = await deliver(worker.url, delivery, counts, signal);
  if (body !== undefined) onAnswer(delivery, body);
  return killed;
}

async function hasEffect(database, { key }) {
  const find = database.prepare("SELECT 1 FROM effects WHERE delivery_key = ?1").bind(key);
  return (await find.first()) !== null;
}

/**
 * Servers in front of the endpoints. Once `isOver` they pass nothing on, and `held` resolves with the first request that
 * they hold back.
 */
async function openGates(endpoints, isOver) {
  let hold;
  const held = new Promise((resolve) => {
    hold = resolve;
  });
  const servers = endpoints.map(({ url }) =>
    createServer(async (incoming, outgoing) => {
      // Without a database the Worker has ended.
      if (await isOver().catch(() => true)) return hold();
      const { method, headers } = incoming;
      const passed = request(url + incoming.url, { method, headers }, (answer) => {
        outgoing.writeHead(answer.statusCode, answer.headers);
        answer.pipe(outgoing);
      });
      passed.on("error", () => outgoing.destroy());
      incoming.pipe(passed);
    }).listen(0, "127.0.0.1"),
  );
  await Promise.all(servers.map((server) => once(server, "listening")));
  const env = servers.flatMap((server, index) => [
    [`UPSTASH_REDIS_REST_URL_${index + 1}`, `http://127.0.0.1:${server.address().port}`],
    [`UPSTASH_REDIS_REST_TOKEN_${index + 1}`, endpoints[index].token],
  ]);
  function close() {
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
  }
  return { env: Object.fromEntries(env), held, close };
}
