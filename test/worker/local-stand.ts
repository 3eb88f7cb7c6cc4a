import { randomUUID } from "node:crypto";
import { start } from "../../local/src/index.ts";
import {
  type Delivery,
  githubDelivery,
  githubExamples,
  send,
  standardDelivery,
  stripeDelivery,
} from "../../tools/deliveries.mjs";
import { randomSecrets, startWorker } from "../../tools/local-worker.mjs";
import { bestEngine } from "../support/redis-servers.ts";
import { until } from "../support/until.ts";

/** A row of one of the Worker's tables. */
export type Row = Readonly<Record<string, string | number | null>>;

/** The Worker in workerd with its endpoints and database, and operations on them for tests. */
export type LocalStand = Awaited<ReturnType<typeof openStand>>;

/** Starts everything: with real Redis servers if the program is installed, else with the embedded engine. */
export async function openStand() {
  const local = await start({ count: 3, engine: bestEngine });
  const secrets = randomSecrets();
  const worker = await startWorker({ bindings: { ...secrets, ...local.env() } }).catch(async (error) => {
    await local.close();
    throw error;
  });

  /** Runs a statement on the Worker's database. */
  async function query(statement: string, ...values: (string | number)[]): Promise<readonly Row[]> {
    const prepared = worker.database.prepare(statement).bind(...values);
    return (await prepared.all()).results;
  }

  return {
    url: worker.url,
    endpoints: local.endpoints,
    /** The bindings that a sender or a reader has to know. */
    secrets,
    query,
    /** A delivery of GitHub's own example of an event. */
    async github(event: string): Promise<Delivery> {
      const [payload] = githubExamples().find(({ name }) => name === event)!.examples;
      // A distinct body: equal bodies are one delivery.
      const own = { ...payload, stand: randomUUID() };
      return githubDelivery(secrets.GITHUB_WEBHOOK_SECRET, event, own, randomUUID());
    },
    /** A Standard Webhook about the object with this id. */
    standard(id: string): Delivery {
      const payload = { type: "invoice.paid", data: { id } };
      return standardDelivery(secrets.STANDARD_WEBHOOKS_SECRET, payload, `msg_${randomUUID()}`);
    },
    /** An event of Stripe about the object with this id. */
    stripe(id: string): Delivery {
      const eventId = `evt_${randomUUID().replaceAll("-", "")}`;
      return stripeDelivery(secrets.STRIPE_WEBHOOK_SECRET, "invoice.paid", { id }, eventId);
    },
    send: (delivery: Delivery): Promise<Response> => send(worker.url, delivery),
    /** The effects of a delivery. */
    effects: ({ key }: Delivery) => query("SELECT * FROM effects WHERE delivery_key = ?1", key),
    /** The journal's rows about a delivery, oldest first; waits until there are `count` of them. */
    journal: ({ key }: Delivery, count: number): Promise<readonly Row[]> =>
      until(async () => {
        const rows = await query("SELECT * FROM deliveries WHERE delivery_key = ?1 ORDER BY id", key);
        return rows.length >= count ? rows : undefined;
      }, `${count} rows in the journal`),
    /** The number of HTTP requests that the endpoints have received. */
    requests: () => local.endpoints.reduce((sum, { log }) => sum + log.requests, 0),
    async close() {
      await Promise.all([worker.close(), local.close()]);
    },
  };
}

/** Sends copies of a delivery at the same time. Returns the statuses of the answers; replays as `"replayed"`. */
export async function sendAtOnce(
  stand: LocalStand,
  delivery: Delivery,
  copies: number,
): Promise<(number | "replayed")[]> {
  const responses = await Promise.all(Array.from({ length: copies }, () => stand.send(delivery)));
  return responses.map(({ status, headers }) => (headers.has("idempotent-replayed") ? "replayed" : status));
}

/** Sends a delivery until it succeeds, as senders do. */
export function sendUntilSuccess(stand: LocalStand, delivery: Delivery): Promise<boolean> {
  return until(async () => (await stand.send(delivery)).status === 200, "a success");
}
