import { randomUUID } from "node:crypto";
import { type LocalEndpoint, start } from "../../local/src/index.ts";
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
export interface LocalStand {
  readonly url: string;
  readonly endpoints: readonly LocalEndpoint[];
  /** The variables that `endpointsFromEnv` reads. */
  readonly env: Record<string, string>;
  /** A delivery of GitHub's own example of an event. */
  github(event: string): Promise<Delivery>;
  /** A Standard Webhook about the object with this id. */
  standard(id: string): Delivery;
  /** An event of Stripe about the object with this id. */
  stripe(id: string): Delivery;
  send(delivery: Delivery): Promise<Response>;
  /** The bindings that a sender or a reader has to know. */
  readonly secrets: ReturnType<typeof randomSecrets>;
  /** Runs a statement on the Worker's database. */
  query(statement: string, ...values: (string | number)[]): Promise<readonly Row[]>;
  /** The effects of a delivery. */
  effects(delivery: Delivery): Promise<readonly Row[]>;
  /** The journal's rows about a delivery, oldest first; waits until there are `count` of them. */
  journal(delivery: Delivery, count: number): Promise<readonly Row[]>;
  /** The number of HTTP requests that the endpoints have received. */
  requests(): number;
  close(): Promise<void>;
}

/** Starts everything: with real Redis servers if the program is installed, else with the embedded engine. */
export async function openStand(): Promise<LocalStand> {
  const local = await start({ count: 3, engine: bestEngine });
  const secrets = randomSecrets();
  const worker = await startWorker({ bindings: { ...secrets, ...local.env() } }).catch(async (error) => {
    await local.close();
    throw error;
  });

  async function query(statement: string, ...values: (string | number)[]): Promise<readonly Row[]> {
    return (
      await worker.database
        .prepare(statement)
        .bind(...values)
        .all()
    ).results;
  }

  return {
    url: worker.url,
    endpoints: local.endpoints,
    env: local.env(),
    query,
    async github(event) {
      const [payload] = githubExamples().find(({ name }) => name === event)!.examples;
      // A distinct body: equal bodies are one delivery.
      const own = { ...payload, stand: randomUUID() };
      return githubDelivery(secrets.GITHUB_WEBHOOK_SECRET, event, own, randomUUID());
    },
    standard(id) {
      const payload = { type: "invoice.paid", data: { id } };
      return standardDelivery(secrets.STANDARD_WEBHOOKS_SECRET, payload, `msg_${randomUUID()}`);
    },
    stripe(id) {
      const eventId = `evt_${randomUUID().replaceAll("-", "")}`;
      return stripeDelivery(secrets.STRIPE_WEBHOOK_SECRET, "invoice.paid", { id }, eventId);
    },
    send: (delivery) => send(worker.url, delivery),
    secrets,
    effects: ({ key }) => query("SELECT * FROM effects WHERE delivery_key = ?1", key),
    journal: ({ key }, count) =>
      until(async () => {
        const rows = await query("SELECT * FROM deliveries WHERE delivery_key = ?1 ORDER BY id", key);
        return rows.length >= count ? rows : undefined;
      }, `${count} rows in the journal`),
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

/** Sends a delivery until it succeeds, as senders do. Returns the number of attempts. */
export async function sendUntilSuccess(stand: LocalStand, delivery: Delivery): Promise<number> {
  let tries = 0;
  await until(async () => {
    tries += 1;
    return (await stand.send(delivery)).status === 200;
  }, "a success");
  return tries;
}
