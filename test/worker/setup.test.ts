import { afterEach, describe, expect, it } from "vitest";
import { githubDelivery, send, standardDelivery } from "../../scripts/deliveries.mjs";
import { randomSecrets, startWorker } from "../../scripts/local-worker.mjs";

const secrets = randomSecrets();
// Nobody listens there. What is tested here is over before anything is asked of Redis.
const endpoint = { UPSTASH_REDIS_REST_URL_1: "http://127.0.0.1:9", UPSTASH_REDIS_REST_TOKEN_1: "token" };

let running: Awaited<ReturnType<typeof startWorker>> | undefined;
afterEach(async () => {
  await running?.close();
  running = undefined;
});

async function start(bindings: Record<string, string>, withDatabase = true): Promise<string> {
  running = await startWorker({ bindings, withDatabase });
  return running.url;
}

async function problem(response: Response): Promise<{ status: number; detail: string; hint: string }> {
  expect(response.headers.get("content-type")).toBe("application/problem+json");
  return response.json();
}

const payload = { action: "opened", repository: { full_name: "octo/demo" } };
const fromGitHub = () => githubDelivery(secrets.GITHUB_WEBHOOK_SECRET, "issues", payload, "d1");
const standard = () => standardDelivery(secrets.STANDARD_WEBHOOKS_SECRET, { type: "x" }, "msg_1");

describe("a Worker that is not set up", () => {
  it("names the secrets that are missing or unusable, and repeats none", async () => {
    const url = await start({ ...endpoint, STANDARD_WEBHOOKS_SECRET: "whsec_tooshort" });
    const missing = await problem(await send(url, await fromGitHub()));
    expect(missing).toMatchObject({ status: 501, detail: "the binding GITHUB_WEBHOOK_SECRET is missing" });
    expect(missing.hint).toContain("wrangler secret put GITHUB_WEBHOOK_SECRET");
    const unusable = await problem(await send(url, standard()));
    expect(unusable.status).toBe(500);
    expect(unusable.detail).toMatch(/^STANDARD_WEBHOOKS_SECRET: /);
    expect(JSON.stringify(unusable)).not.toContain("tooshort");
    expect((await problem(await fetch(`${url}/healthz`))).status).toBe(500);
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
      await fetch(`${url}/`),
      await fetch(`${url}/deliveries`),
      await fetch(`${url}/healthz`),
    ]) {
      const { status, detail } = await problem(response);
      expect([status, detail]).toEqual([500, "the binding DB is missing"]);
    }
  });

  it("says how to make the tables when there are none", async () => {
    const url = await start({ ...secrets, ...endpoint });
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
    for (const table of ["effects", "entities", "deliveries"]) {
      await running?.database.prepare(`DROP TABLE ${table}`).run();
    }
    const { status, hint } = await problem(await fetch(`${url}/healthz`));
    expect(status).toBe(500);
    expect(hint).toContain("worker/schema.sql");
  });
});

describe("a Worker that is set up", () => {
  it("answers what is not there with a problem", async () => {
    const url = await start({ ...secrets, ...endpoint });
    expect(await problem(await fetch(`${url}/nothing`))).toMatchObject({ status: 404 });
    expect(await problem(await fetch(`${url}/webhooks/github`))).toMatchObject({ status: 404 });
  });
});
