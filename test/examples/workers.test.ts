import { readFileSync } from "node:fs";
import { Response } from "miniflare";
import { expect, it } from "vitest";
import { until } from "../support/until.ts";
import { startInWorkerd } from "./bundle.ts";
import { staged } from "./stage.ts";

// The examples for Cloudflare Workers, in workerd, with D1; once.test.ts has their webhooks.

const at = staged();

/** The example's schema in one line: D1's `exec` takes each line for a statement. */
const schemaOf = (example: string) =>
  readFileSync(`examples/${example}/schema.sql`, "utf8").replaceAll("\n", " ");

it("examples/oauth refreshes an expired token once for ten requests, and keeps that of a later refresh", async () => {
  /** A server that accepts each refresh token once. */
  const login = { refreshes: 0, valid: "refresh-0" };
  const refresh = (used: string | null) => {
    if (used !== login.valid) return new Response(null, { status: 400 });
    login.refreshes += 1;
    login.valid = `refresh-${login.refreshes}`;
    const access_token = `access-${login.refreshes}`;
    return Response.json({ access_token, refresh_token: login.valid, expires_in: 3_600 });
  };
  const worker = await startInWorkerd("oauth/worker.ts", {
    bindings: { ...at.local.env(), CLIENT_ID: "id", CLIENT_SECRET: "secret" },
    d1Databases: ["DB"],
    async outboundService(request: Request) {
      const { hostname } = new URL(request.url);
      const body = await request.text();
      if (hostname === "login.partner.example")
        return refresh(new URLSearchParams(body).get("refresh_token"));
      if (hostname === "api.partner.example") return new Response(request.headers.get("authorization"));
      // The endpoints.
      const { method, headers } = request;
      const reply = await fetch(request.url, { method, headers, body });
      return new Response(await reply.text(), { status: reply.status, headers: [...reply.headers] });
    },
  });
  const db = await worker.getD1Database("DB");
  await db.exec(schemaOf("oauth"));
  await db.prepare("INSERT INTO tokens VALUES ('acme', 'access-0', 'refresh-0', 0, 0)").run();
  const ask = () => worker.dispatchFetch("https://shop.example/");

  const answers = await Promise.all(Array.from({ length: 10 }, ask));
  const texts = await Promise.all(answers.map((answer) => answer.text()));
  expect(texts).toEqual(new Array(10).fill("Bearer access-1"));
  expect(login.refreshes).toBe(1);
  const newer = "UPDATE tokens SET refresh_token = 'refresh-9', expires_at = 0, fence = ?1";
  await db
    .prepare(newer)
    .bind(2 ** 50)
    .run();
  login.valid = "refresh-9";
  expect((await ask()).status).toBe(500);
  expect(await db.prepare("SELECT refresh_token FROM tokens").first()).toEqual({
    refresh_token: "refresh-9",
  });
});

it("examples/d1-fence takes five amounts that are requested at once, and nothing when a later holder has the row", async () => {
  const worker = await startInWorkerd("d1-fence/worker.ts", {
    bindings: at.local.env(),
    d1Databases: ["DB"],
  });
  const db = await worker.getD1Database("DB");
  await db.exec(schemaOf("d1-fence"));
  await db.prepare("INSERT INTO accounts VALUES ('a', 60, 0)").run();
  const body = JSON.stringify({ account: "a", amount: 10 });
  const pay = async () =>
    (await worker.dispatchFetch("https://shop.example/", { method: "POST", body })).status;
  const untilDecided = async () => {
    for (;;) {
      const status = await pay();
      if (status !== 409) return status;
    }
  };
  expect(await Promise.all(Array.from({ length: 5 }, untilDecided))).toEqual([200, 200, 200, 200, 200]);
  await db
    .prepare("UPDATE accounts SET fence = ?1")
    .bind(2 ** 50)
    .run();
  expect(await pay()).toBe(409);
  expect(await db.prepare("SELECT balance FROM accounts").first()).toEqual({ balance: 10 });
});

it("examples/partner-calls allows four calls at once from two Workers together", async () => {
  // They wait up to a minute for a permit.
  const bindings = { ...at.local.env(), PARTNER_URL: at.service.url, WAIT_MS: "60000" };
  const start = () => startInWorkerd("partner-calls/worker.ts", { bindings });
  const workers = await Promise.all([start(), start()]);
  at.service.rule = () => undefined;
  const answers = Array.from({ length: 10 }, (_, index) =>
    workers[index % 2]!.dispatchFetch(`http://worker/quotes/${index}?currency=EUR`),
  );
  let most = 0;
  for (let answered = 0; answered < 10; answered += 1) {
    const call = await at.service.next();
    // The limit is reached before one of the calls is answered.
    if (answered < 6) await until(() => at.service.calls.length >= answered + 4, "four calls");
    most = Math.max(most, at.service.calls.length - answered);
    call.answer(200);
  }
  expect(most).toBe(4);
  const replies = await Promise.all(answers);
  expect(replies.map(({ status }) => status)).toEqual(new Array(10).fill(200));
  const paths = Array.from({ length: 10 }, (_, index) => `/quotes/${index}?currency=EUR`);
  expect(at.service.calls.map(({ path }) => path).sort()).toEqual(paths);
});

it("examples/lock-server answers others by HTTPS, with its token", async () => {
  const token = "0123456789abcdef0123456789abcdef";
  const worker = await startInWorkerd("lock-server/worker.ts", {
    bindings: { LOCKS_TOKEN: token, GITHUB_WEBHOOK_SECRET: "secret" },
    durableObjects: { LOCKS: { className: "LockServer", useSQLite: true } },
  });
  const body = JSON.stringify(["SET", "redlock:lock:{a}", "t1", "NX", "PX", 1_000]);
  const ask = (given: string) =>
    worker.dispatchFetch("https://locks.example/", {
      method: "POST",
      body,
      headers: { authorization: `Bearer ${given}` },
    });
  const answer = await ask(token);
  expect([answer.status, await answer.json()]).toEqual([200, { result: "OK" }]);
  expect((await ask("no")).status).toBe(401);
});
