import { createHmac, randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { Miniflare, type RequestInit, Response } from "miniflare";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { bundleForWorkerd } from "./bundle.ts";
import { openStage, type Stage } from "./stage.ts";

// The examples for Cloudflare Workers, in workerd, with D1. What they fetch from hosts in .example is answered here.

/** Answers for the hosts that the examples call, by host. */
const services: Record<string, (request: { url: URL; body: string }) => Response> = {};
const stripeSecret = "whsec_example";
const githubSecret = "secret of GitHub's webhooks";
const locksToken = "0123456789abcdef0123456789abcdef";

let stage: Stage;
let workers: Miniflare;
beforeAll(async () => {
  stage = await openStage();
  const worker = async (name: string, example: string, more: object = {}) => ({
    name,
    modules: true as const,
    script: await bundleForWorkerd(example),
    compatibilityDate: "2026-04-01",
    outboundService: answer,
    bindings: { ...stage.local.env(), ...more },
  });
  workers = new Miniflare({
    workers: [
      await worker("stripe", "stripe-worker/src/index.ts", {
        STRIPE_WEBHOOK_SECRET: stripeSecret,
        ORDERS_URL: "https://orders.example",
      }),
      {
        ...(await worker("oauth", "oauth/worker.ts", { CLIENT_ID: "id", CLIENT_SECRET: "secret" })),
        d1Databases: { DB: "tokens" },
      },
      { ...(await worker("fence", "d1-fence/worker.ts")), d1Databases: { DB: "accounts" } },
      {
        ...(await worker("locks", "lock-server/worker.ts", {
          LOCKS_TOKEN: locksToken,
          GITHUB_WEBHOOK_SECRET: githubSecret,
        })),
        durableObjects: { LOCKS: { className: "LockServer", useSQLite: true } },
      },
    ],
  });
  await workers.ready;
}, 60_000);
afterAll(async () => {
  await workers.dispose();
  await stage.local.close();
});
beforeEach(() => stage.each("FLUSHALL"));

async function answer(request: Request): Promise<Response> {
  const url = new URL(request.url);
  const service = services[url.hostname];
  const body = await request.text();
  if (service) return service({ url, body });
  // The endpoints.
  const reply = await fetch(url, { method: request.method, headers: request.headers, body });
  return new Response(await reply.text(), { status: reply.status, headers: [...reply.headers] });
}

/** The example's schema in one line: D1's `exec` takes each line for a statement. */
const schemaOf = (example: string) =>
  readFileSync(`examples/${example}/schema.sql`, "utf8").replaceAll("\n", " ");

async function post(name: string, body: string, headers: Record<string, string> = {}) {
  const init: RequestInit = { method: "POST", body, headers };
  return (await workers.getWorker(name)).fetch("https://shop.example/webhooks/stripe", init);
}

describe("examples/stripe-worker", () => {
  /** A delivery as Stripe sends it; each attempt is signed anew. */
  function deliver(id: string) {
    const object = { id: `cs_${id}` };
    const body = JSON.stringify({ id, type: "checkout.session.completed", data: { object } });
    const time = Math.floor(Date.now() / 1_000);
    const signature = createHmac("sha256", stripeSecret).update(`${time}.${body}`).digest("hex");
    return post("stripe", body, { "stripe-signature": `t=${time},v1=${signature}` });
  }

  it("fulfils an event once that is delivered five times at once, and later again", async () => {
    const paths: string[] = [];
    services["orders.example"] = ({ url }) => {
      paths.push(url.pathname);
      return new Response(null, { status: 204 });
    };
    const id = `evt_${randomUUID()}`;
    const statuses = await Promise.all([1, 2, 3, 4, 5].map(async () => (await deliver(id)).status));
    // A delivery that arrives during the first may be told to come again.
    expect(statuses.filter((status) => status !== 204 && status !== 503)).toEqual([]);
    const again = await deliver(id);
    expect([again.status, again.headers.get("idempotent-replayed")]).toEqual([204, "true"]);
    expect(paths).toEqual([`/cs_${id}`]);
  });
});

describe("examples/oauth", () => {
  /** A server that accepts each refresh token once. */
  function openLogin() {
    const login = { refreshes: 0, valid: "refresh-0", reused: 0 };
    services["login.partner.example"] = ({ body }) => {
      const used = new URLSearchParams(body).get("refresh_token");
      if (used !== login.valid) {
        login.reused += 1;
        return new Response(null, { status: 400 });
      }
      login.refreshes += 1;
      login.valid = `refresh-${login.refreshes}`;
      const access_token = `access-${login.refreshes}`;
      return Response.json({ access_token, refresh_token: login.valid, expires_in: 3_600 });
    };
    return login;
  }

  async function openTokens(fence: number) {
    const db = await workers.getD1Database("DB", "oauth");
    await db.exec("DROP TABLE IF EXISTS tokens");
    await db.exec(schemaOf("oauth"));
    await db.prepare("INSERT INTO tokens VALUES ('acme', 'access-0', 'refresh-0', 0, ?1)").bind(fence).run();
    return db;
  }

  it("refreshes an expired token once for ten requests, and each of them uses the new one", async () => {
    const login = openLogin();
    const db = await openTokens(0);
    services["api.partner.example"] = () => new Response("orders");
    const answers = await Promise.all(Array.from({ length: 10 }, () => post("oauth", "")));
    expect(answers.map(({ status }) => status)).toEqual(new Array(10).fill(200));
    expect(login).toEqual({ refreshes: 1, valid: "refresh-1", reused: 0 });
    const row = await db.prepare("SELECT * FROM tokens").first();
    expect(row).toMatchObject({ access_token: "access-1", refresh_token: "refresh-1" });
  });

  it("does not overwrite the tokens of a later refresh", async () => {
    openLogin();
    const db = await openTokens(2 ** 50);
    const refused = await post("oauth", "").then(
      ({ status }) => status,
      () => 500,
    );
    expect(refused).toBe(500);
    expect(await db.prepare("SELECT * FROM tokens").first()).toMatchObject({ refresh_token: "refresh-0" });
  });
});

describe("examples/d1-fence", () => {
  async function openAccount(fence: number) {
    const db = await workers.getD1Database("DB", "fence");
    await db.exec("DROP TABLE IF EXISTS accounts");
    await db.exec(schemaOf("d1-fence"));
    await db.prepare("INSERT INTO accounts VALUES ('a', 50, ?1)").bind(fence).run();
    return async () =>
      (await db.prepare("SELECT balance FROM accounts").first<{ balance: number }>())?.balance;
  }
  const pay = () => post("fence", JSON.stringify({ account: "a", amount: 10 }));

  it("takes five amounts that are requested at once, and then nothing more", async () => {
    const balance = await openAccount(0);
    const untilDecided = async () => {
      for (;;) {
        const { status } = await pay();
        if (status !== 409) return status;
      }
    };
    expect(await Promise.all(Array.from({ length: 5 }, untilDecided))).toEqual([200, 200, 200, 200, 200]);
    expect(await balance()).toBe(0);
    expect((await pay()).status).toBe(422);
  });

  it("does not write when a later holder has the row", async () => {
    const balance = await openAccount(2 ** 50);
    expect((await pay()).status).toBe(409);
    expect(await balance()).toBe(50);
  });
});

describe("examples/lock-server", () => {
  async function ask(path: string, body: string, headers: Record<string, string>) {
    const init: RequestInit = { method: "POST", body, headers };
    return (await workers.getWorker("locks")).fetch(`https://locks.example${path}`, init);
  }

  it("handles a delivery of GitHub once, under a lock with a fence, without any Redis", async () => {
    const deliver = (after: string) => {
      const body = JSON.stringify({ after, repository: { id: 7 } });
      return ask("/webhooks/github", body, {
        "x-github-delivery": randomUUID(),
        "x-hub-signature-256": `sha256=${createHmac("sha256", githubSecret).update(body).digest("hex")}`,
      });
    };
    const first = await deliver("a");
    expect(first.status).toBe(200);
    const { fence, delivery } = (await first.json()) as { fence: number; delivery: string };
    const again = await deliver("a");
    expect(again.headers.get("idempotent-replayed")).toBe("true");
    expect(await again.json()).toEqual({ delivery, fence });
    const other = (await (await deliver("b")).json()) as { fence: number };
    expect(other.fence).toBeGreaterThan(fence);
  });

  it("answers others by HTTPS, with its token", async () => {
    const command = JSON.stringify(["SET", "redlock:lock:{a}", "t1", "NX", "PX", 1_000]);
    const answer = await ask("/", command, { authorization: `Bearer ${locksToken}` });
    expect([answer.status, await answer.json()]).toEqual([200, { result: "OK" }]);
    expect((await ask("/", command, { authorization: "Bearer no" })).status).toBe(401);
  });
});
