import { once } from "node:events";
import { createServer } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { send } from "../deliveries.mjs";
import { deliver } from "./senders.mjs";

/**
 * Kills the Worker after each delivery's effect is in the database and before Redis knows of it, and starts it again.
 * Then its sender tries until it succeeds.
 *
 * @param {object} stage
 * @param {import("../local-worker.mjs").LocalWorker} stage.worker
 * @param {any} stage.local the endpoints
 * @param {Record<string, string>} stage.bindings the Worker's bindings
 * @param {readonly import("../deliveries.mjs").Delivery[]} deliveries
 * @param {object} sender
 * @param {import("./senders.mjs").PhaseCounts} sender.counts
 * @param {AbortSignal} sender.signal
 * @param {(delivery: import("../deliveries.mjs").Delivery, body: string) => void} sender.onAnswer
 * @returns {Promise<number>} how often the Worker was killed like that
 *
 * @example
 * const kills = await crashAfterEffects({ worker, local, bindings }, deliveries, { counts, signal, onAnswer });
 */
export async function crashAfterEffects(
  { worker, local, bindings },
  deliveries,
  { counts, signal, onAnswer },
) {
  let kills = 0;
  for (const delivery of deliveries) {
    signal.throwIfAborted();
    const gates = await openGates(local.endpoints, () => hasEffect(worker.database, delivery));
    try {
      await worker.restart({ ...bindings, ...gates.env });
      counts.sent += 1;
      // Nobody answers it. The timeout ends a run in which nothing is held back.
      const lost = send(worker.url, delivery, AbortSignal.any([signal, AbortSignal.timeout(20_000)]));
      const killed = await Promise.race([
        gates.held.then(() => true),
        lost.then(
          () => false,
          () => false,
        ),
      ]);
      await worker.restart(bindings);
      await lost.catch(() => undefined);
      if (killed) kills += 1;
    } finally {
      await gates.close();
    }
    // Real senders pause for minutes. The key of the killed run is free after its lease of 10 s.
    await sleep(8_000, undefined, { signal });
    const body = await deliver(worker.url, delivery, counts, signal);
    if (body !== undefined) onAnswer(delivery, body);
  }
  return kills;
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
  const servers = endpoints.map((endpoint) =>
    createServer(async (request, response) => {
      try {
        const body = await readAll(request);
        if (await isOver()) return hold();
        const { authorization = "", "content-type": type = "" } = request.headers;
        const passed = await fetch(endpoint.url + request.url, {
          method: request.method,
          headers: {
            authorization,
            "content-type": type,
            "upstash-encoding": request.headers["upstash-encoding"] ?? "",
          },
          body,
        });
        response.writeHead(passed.status, { "content-type": passed.headers.get("content-type") ?? "" });
        response.end(await passed.text());
      } catch {
        // The Worker or its database has ended.
        response.destroy();
      }
    }).listen(0, "127.0.0.1"),
  );
  await Promise.all(servers.map((server) => once(server, "listening")));
  const env = Object.fromEntries(
    servers.flatMap((server, index) => [
      [`UPSTASH_REDIS_REST_URL_${index + 1}`, `http://127.0.0.1:${server.address().port}`],
      [`UPSTASH_REDIS_REST_TOKEN_${index + 1}`, endpoints[index].token],
    ]),
  );
  async function close() {
    for (const server of servers) {
      server.closeAllConnections();
      server.close();
    }
    await Promise.all(servers.map((server) => (server.listening ? once(server, "close") : undefined)));
  }
  return { env, held, close };
}

async function readAll(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks);
}
