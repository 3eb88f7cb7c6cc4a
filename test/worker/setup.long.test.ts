import { afterEach, describe, expect, it } from "vitest";
import { type LocalEndpoints, start as startLocal } from "../../local/src/index.ts";
import {
  type Delivery,
  githubDelivery,
  send as sendDelivery,
  standardDelivery,
  stripeDelivery,
} from "../../tools/deliveries.mjs";
import { randomSecrets, startWorker } from "../../tools/local-worker.mjs";
import { until } from "../support/until.ts";

const secrets = randomSecrets();
const JOURNAL_SECRET = "a secret of this test, long enough";
// What is not set up is said to the operator alone.
const headers = { authorization: `Bearer ${JOURNAL_SECRET}` };
// No server listens there. The cases here end before any request to Redis.
const endpoint = { UPSTASH_REDIS_REST_URL_1: "http://127.0.0.1:9", UPSTASH_REDIS_REST_TOKEN_1: "token" };

let running: Awaited<ReturnType<typeof startWorker>> | undefined;
let local: LocalEndpoints | undefined;
afterEach(async () => {
  await running?.close();
  await local?.close();
  running = local = undefined;
});

/** Variables of an endpoint that answers. */
async function answering(): Promise<Record<string, string>> {
  local = await startLocal({ count: 1, engine: "embedded" });
  return local.env();
}

async function start(bindings: Record<string, string>, withDatabase = true): Promise<string> {
  running = await startWorker({ bindings: { ...bindings, JOURNAL_SECRET }, withDatabase });
  return running.url;
}

const get = (url: string) => fetch(url, { headers });
const send = (url: string, delivery: Delivery) =>
  sendDelivery(url, { ...delivery, headers: { ...delivery.headers, ...headers } });

async function problem(response: Response): Promise<{ status: number; detail: string; hint: string }> {
  expect(response.headers.get("content-type")).toBe("application/problem+json");
  return response.json();
}

const payload = { action: "opened", repository: { full_name: "octo/demo" } };
const fromGitHub = () => githubDelivery(secrets.GITHUB_WEBHOOK_SECRET, "issues", payload, "d1");
const standard = () => standardDelivery(secrets.STANDARD_WEBHOOKS_SECRET, { type: "x" }, "msg_1");

describe("a Worker that is not set up", () => {
  it("names a secret that is unusable, without its value", async () => {
    const url = await start({ ...endpoint, STANDARD_WEBHOOKS_SECRET: "whsec_tooshort" });
    const unusable = await problem(await send(url, standard()));
    expect(unusable.status).toBe(500);
    expect(unusable.detail).toMatch(/^STANDARD_WEBHOOKS_SECRET: /);
    expect(JSON.stringify(unusable)).not.toContain("tooshort");
    expect((await problem(await get(`${url}/healthz`))).status).toBe(500);
  });

  it("names the endpoint's variable that is missing", async () => {
    const { UPSTASH_REDIS_REST_URL_1 } = endpoint;
    const url = await start({ ...secrets, UPSTASH_REDIS_REST_URL_1 });
    const missing = await problem(await send(url, await fromGitHub()));
    expect(missing.status).toBe(500);
    expect(missing.detail).toContain("UPSTASH_REDIS_REST_TOKEN_1 is missing");
  });

  it("names the database when it is missing", async () => {
    const url = await start({ ...secrets, ...endpoint }, false);
    for (const response of [
      await send(url, await fromGitHub()),
      await get(`${url}/`),
      await get(`${url}/deliveries`),
      await get(`${url}/healthz`),
    ]) {
      const { status, detail } = await problem(response);
      expect([status, detail]).toEqual([500, "the binding DB is missing"]);
    }
  });

  it("says how to create the tables if there are none", async () => {
    const url = await start({ ...secrets, ...(await answering()) });
    for (const table of ["effects", "entities", "deliveries"]) {
      await running!.database.prepare(`DROP TABLE ${table}`).run();
    }
    for (const path of ["/", "/healthz"]) {
      const { status, hint } = await problem(await get(url + path));
      expect(status).toBe(500);
      expect(hint).toContain("worker/schema.sql");
    }
  });
});

describe("a sender that is not set up", () => {
  it("gets 501 and the name of the missing secret, without a request to Redis; other senders work", async () => {
    const { GITHUB_WEBHOOK_SECRET } = secrets;
    const url = await start({ GITHUB_WEBHOOK_SECRET, STRIPE_WEBHOOK_SECRET: "", ...endpoint });
    const missing = {
      standard: "STANDARD_WEBHOOKS_SECRET",
      stripe: "STRIPE_WEBHOOK_SECRET",
      shopify: "SHOPIFY_CLIENT_SECRET",
      slack: "SLACK_SIGNING_SECRET",
      linear: "LINEAR_WEBHOOK_SECRET",
    };
    const signed = stripeDelivery(secrets.STRIPE_WEBHOOK_SECRET, "invoice.paid", { id: "in_1" }, "evt_1");
    for (const [path, secret] of Object.entries(missing)) {
      const answer = await problem(await send(url, { ...signed, path: `/webhooks/${path}` }));
      expect(answer).toMatchObject({ status: 501, detail: `the binding ${secret} is missing` });
      expect(answer.hint).toContain(`wrangler secret put ${secret}`);
    }
    const unanswered = await send(url, await fromGitHub());
    expect(unanswered.status).toBe(503);
    const rows = await until(async () => {
      const { results } = await running!.database.prepare("SELECT * FROM deliveries").all();
      return results.length >= 6 ? results : undefined;
    }, "six rows in the journal");
    const refused = { provider: "stripe", outcome: "refused", status: 501, delivery: null, requests: 0 };
    expect(rows).toContainEqual(expect.objectContaining(refused));
  });

  it("is left out of /healthz and of the page", async () => {
    const { GITHUB_WEBHOOK_SECRET } = secrets;
    const url = await start({ GITHUB_WEBHOOK_SECRET, ...(await answering()) });
    const health = await (await get(`${url}/healthz`)).json();
    expect(health).toMatchObject({ status: "ok", senders: ["github"] });
    const html = await (await get(`${url}/`)).text();
    expect(html).toContain(`${url}/webhooks/github`);
    expect(html).not.toContain("/webhooks/stripe");
  });

  it("makes /healthz fail if there is no other sender", async () => {
    const url = await start(endpoint);
    expect(await problem(await get(`${url}/healthz`))).toMatchObject({
      status: 500,
      detail: "no sender has a secret",
    });
  });
});

describe("the Worker of `npm run dev`", () => {
  it("sends no sample for another site's page", async () => {
    running = await startWorker({ bindings: { ...secrets, ...(await answering()) }, samples: true });
    const { url } = running;
    const post = (site: string) =>
      fetch(`${url}/samples`, {
        method: "POST",
        body: new URLSearchParams({ send: "signed" }),
        headers: { "sec-fetch-site": site },
        redirect: "manual",
      });
    for (const site of ["cross-site", "same-site"]) {
      expect(await problem(await post(site))).toMatchObject({ status: 403 });
    }
    const sent = await post("same-origin");
    expect([sent.status, sent.headers.get("location")]).toEqual([303, "/"]);
    const { results } = await running.database.prepare("SELECT outcome, status FROM deliveries").all();
    expect(results).toEqual([{ outcome: "executed", status: 200 }]);
  });
});
