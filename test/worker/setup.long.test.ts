import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "vitest";
import { d1Schema } from "../../src/inbox/index.ts";
import { forged, githubDelivery, send, stripeDelivery } from "../../tools/deliveries.mjs";
import { createTables, randomSecrets, startWorker } from "../../tools/local-worker.mjs";
import { until } from "../support/until.ts";

const secrets = randomSecrets();
// No server listens there. The cases here end before any request to Redis.
const endpoint = { UPSTASH_REDIS_REST_URL_1: "http://127.0.0.1:9", UPSTASH_REDIS_REST_TOKEN_1: "token" };

let running: Awaited<ReturnType<typeof startWorker>> | undefined;
let log = "";
afterEach(() => running?.close());

async function start(bindings: Record<string, string>): Promise<string> {
  log = "";
  const onLog = (text: string) => {
    log += text;
  };
  running = await startWorker({ bindings, onLog });
  return running.url;
}

const payload = { action: "opened", repository: { full_name: "octo/demo" } };
const fromGitHub = () => githubDelivery(secrets.GITHUB_WEBHOOK_SECRET, "issues", payload, "d1");

describe("a Worker that is not set up", () => {
  const { UPSTASH_REDIS_REST_TOKEN_1: _, ...tokenMissing } = endpoint;
  it.each<[string, Record<string, string>, string]>([
    ["an endpoint's token", { ...secrets, ...tokenMissing }, "UPSTASH_REDIS_REST_TOKEN_1 is missing"],
    ["every endpoint", secrets, "UPSTASH_REDIS_REST_URL is missing"],
  ])("without %s fails, and says why in its log alone", async (_, bindings, cause) => {
    const url = await start(bindings);
    const response = await send(url, await fromGitHub());
    const answer = { status: 500, title: "The event could not be handled: send it again" };
    expect([response.status, await response.json()]).toEqual([500, answer]);
    await until(() => log.includes(cause), "the cause in the log");
    const health = await fetch(`${url}/healthz`);
    expect([health.status, await health.json()]).toEqual([503, { status: "unavailable" }]);
  });
});

it("a sender without a secret gets 501, and others are verified", async () => {
  const { GITHUB_WEBHOOK_SECRET, STRIPE_WEBHOOK_SECRET } = secrets;
  const url = await start({ GITHUB_WEBHOOK_SECRET, STRIPE_WEBHOOK_SECRET: "", ...endpoint });
  const missing = await send(url, stripeDelivery(STRIPE_WEBHOOK_SECRET, "invoice.paid", { id: "in" }, "evt"));
  expect([missing.status, await missing.json()]).toEqual([
    501,
    { status: 501, title: "This sender is not set up" },
  ]);
  await until(() => log.includes("STRIPE_WEBHOOK_SECRET is missing"), "the cause in the log");
  expect((await send(url, forged(await fromGitHub()))).status).toBe(401);
  const rows = await until(async () => {
    const { results } = await running!.database.prepare("SELECT * FROM deliveries ORDER BY id").all();
    return results.length === 2 && results;
  }, "two rows in the journal");
  expect(rows).toMatchObject([
    { sender: "stripe", outcome: "refused", status: 501, delivery_key: null },
    { sender: "github", outcome: "refused", status: 401, delivery_key: null },
  ]);
});

describe("schema.sql", () => {
  it("has the tables of the inbox", () => {
    expect(readFileSync("worker/schema.sql", "utf8")).toContain(d1Schema.trim());
  });

  it("can be applied again, and keeps what is there", async () => {
    await start({});
    await running!.database.prepare("INSERT INTO entities VALUES ('a', 1, 1)").run();
    await createTables(running!.database);
    const { results } = await running!.database.prepare("SELECT entity FROM entities").all();
    expect(results).toEqual([{ entity: "a" }]);
  });
});
