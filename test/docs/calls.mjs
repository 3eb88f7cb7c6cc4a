// What the programs of the pages export, called as their readers would call it: with realistic events, twice where once
// matters. Those of examples are in test/examples.

import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import process from "node:process";
import { pathToFileURL } from "node:url";
import { Miniflare } from "miniflare";
import pg from "pg";

const ctx = { waitUntil: (work) => work, passThroughOnException: () => undefined };
const lambda = { getRemainingTimeInMillis: () => 30_000 };
const origin = "https://shop.example";

/** The calls, by page and by name of the export; if several programs of a page export it, by their number as well. */
export const calls = {
  "README.md app": (app) => overHttp(createServer(app), deliveredTwice),
  "README.md handler": async (handler) => assert.equal(await handler({ order: "7" }, lambda), "shipped"),
  "README.md POST": async (POST) => {
    const [first, again] = await twice(() => POST(keyed("/payments")));
    assert.deepEqual(first, { charged: 10 });
    assert.deepEqual(again, first);
  },
  "docs/lock.md pay": async (pay) => assert.equal(await pay("43"), "paid"),
  "docs/frameworks.md app 1": async (app) => {
    await overHttp(createServer(app), async (fetchFrom) => {
      await deliveredTwice(fetchFrom);
      const [first, again] = await twice(() => fetchFrom(keyed("/payments", "application/json")));
      assert.deepEqual(first.of, { amount: 10 });
      assert.deepEqual(first, again);
    });
  },
  "docs/frameworks.md app 2": (app) => overHttp(app.server, deliveredTwice),
  "docs/frameworks.md POST": (POST) => deliveredTwice((request) => POST({ request })),
  "docs/frameworks.md server": (server) => overHttp(server, deliveredTwice),
  "docs/idempotency-key.md default": async (app, env) => {
    const paid = await twice(() => app.fetch(keyed("/payments"), env, ctx));
    assert.deepEqual(paid[0], paid[1]);
  },
  "docs/idempotency-key.md POST": (POST) => twice(() => POST(keyed("/payments"))),
  "docs/webhooks.md default": async (app, env) => {
    const body = '{"id":"evt_1","data":{"object":{"id":"in_1"}}}';
    const handled = await twice(() => app.fetch(stripeDelivery(body), env, ctx));
    assert.deepEqual(handled, [{ received: "evt_1" }, { received: "evt_1" }]);
  },
  "docs/lock.md default": async (app, env) => {
    const closing = new Request(`${origin}/accounts/7/close`, { method: "POST" });
    const { closed, under } = await bodyOf(await app.fetch(closing, env, ctx));
    assert.equal(closed, "7");
    assert.ok(under > 0);
  },
  "docs/migrating.md underBoth": async (underBoth) => {
    const lost = new AbortController();
    const old = { using: (_names, _ttl, job) => job(lost.signal) };
    const done = await underBoth(old, "report", async (signal) => {
      lost.abort();
      return signal.aborted;
    });
    assert.equal(done, true);
  },
  "docs/queues.md receive": (receive) => deliveredTwice(receive),
  "docs/queues.md consume": (consume) => consume("evt_1"),
  "docs/rotate-secret.md POST": (POST) => deliveredTwice(POST),
  "docs/inbox.md credit": async (credit) => {
    const { d1Schema } = await inbox();
    const worker = new Miniflare({
      modules: true,
      script: "export default {}",
      d1Databases: ["DB"],
      cf: false,
      telemetry: { enabled: false },
    });
    try {
      const db = await worker.getD1Database("DB");
      const tables = `${d1Schema}; CREATE TABLE customers (id TEXT, credit INTEGER); INSERT INTO customers VALUES ('c', 0)`;
      for (const statement of tables.split(";").filter((text) => text.trim()))
        await db.prepare(statement).run();
      const delivery = { provider: "stripe", id: "evt_7" };
      assert.equal(await credit(db, delivery, "c", 7), true);
      assert.equal(await credit(db, delivery, "c", 7), false);
      assert.equal(await credit(db, { ...delivery, handler: "bonus" }, "c", 1), true);
      assert.deepEqual(await db.prepare("SELECT credit FROM customers").first(), { credit: 8 });
    } finally {
      await worker.dispose();
    }
  },
  "docs/inbox.md POST": async (POST, env) => {
    const { postgresSchema } = await inbox();
    await inPostgres(env, async (client) => {
      await client.query(`${postgresSchema} CREATE TABLE customers (id text, credit integer)`);
      await client.query("INSERT INTO customers VALUES ('c', 0)");
      const body = '{"id":"evt_7","type":"customer.credited","data":{"object":{"customer":"c","amount":7}}}';
      const deliver = async () => bodyOf(await POST(stripeDelivery(body)));
      assert.deepEqual(await deliver(), { first: true });
      assert.deepEqual(await deliver(), { first: true });
      await onEach(env, "FLUSHALL");
      assert.deepEqual(await deliver(), { first: false });
      assert.deepEqual((await client.query("SELECT credit FROM customers")).rows, [{ credit: 7 }]);
    });
  },
  "docs/inbox.md setBalance": async (setBalance, env) => {
    const { postgresSchema } = await inbox();
    await inPostgres(env, async (client) => {
      await client.query(`${postgresSchema} CREATE TABLE wallets (id text, balance integer)`);
      await client.query("INSERT INTO wallets VALUES ('a', 0)");
      const [older, newer] = [new Date(1_000), new Date(2_000)];
      assert.equal(await setBalance("1", "a", 7, newer), true);
      assert.equal(await setBalance("1", "a", 7, newer), false);
      assert.equal(await setBalance("0", "a", 5, older), false);
      assert.deepEqual((await client.query("SELECT balance FROM wallets")).rows, [{ balance: 7 }]);
    });
  },
  "docs/idempotency.md accessToken": async (accessToken) => {
    const tokens = await Promise.all(["acme", "acme", "other"].map((account) => accessToken(account)));
    assert.equal(tokens[0].token, tokens[1].token);
    assert.notEqual(tokens[0].token, tokens[2].token);
  },
  "docs/sync.md transfer": (transfer) => transfer(5),
  "docs/sync.md changed 2": async (changed) => {
    const works = [];
    await changed("shop-1", { waitUntil: (work) => works.push(work) });
    assert.equal((await works[0]).ran, true);
  },
  "docs/sync.md changed 1": async (changed) => {
    const outcomes = await Promise.all([1, 2, 3].map((version) => changed("shop-1", version)));
    // One at least; the others have run before it, or are left to one.
    assert.ok(outcomes.some((outcome) => outcome.startsWith("indexed version")));
    assert.equal(await changed("shop-1", 4), "indexed version 4");
  },
  "docs/refresh-once.md accessToken": async (accessToken, env) => {
    const used = [];
    const login = ({ body }) => {
      used.push(body.get("refresh_token"));
      const n = used.length;
      return Response.json({ access_token: `access-${n}`, refresh_token: `refresh-${n}`, expires_in: 3_600 });
    };
    await answering("https://login.example", login, () =>
      inPostgres(env, async (client) => {
        // That of Auth.js, as far as it matters here.
        await client.query(`CREATE TABLE accounts ("userId" text, provider text, access_token text, refresh_token text,
          expires_at bigint, fence bigint NOT NULL DEFAULT 0)`);
        await client.query("INSERT INTO accounts VALUES ('7', 'acme', 'access-0', 'refresh-0', 0)");
        const refreshed = () => Promise.all([accessToken("7"), accessToken("7"), accessToken("7")]);
        assert.deepEqual(await refreshed(), ["access-1", "access-1", "access-1"]);
        assert.equal((await client.query("SELECT * FROM accounts")).rows[0].refresh_token, "refresh-1");
        assert.deepEqual(used, ["refresh-0"]);
      }),
    );
  },
  "docs/sync.md stored": async (stored) => {
    for (const part of ["1", "2", "3", "4", "5"]) await stored("7", part);
  },
  "docs/sync.md worker": async (worker) => {
    const done = [];
    const phases = (id) => [1, 2].map((phase) => async () => void done.push(`${phase}${id}`));
    await Promise.all(["a", "b", "c"].map((id) => worker(id, phases(id))));
    assert.deepEqual(done.map(([phase]) => phase).join(""), "111222");
  },
  "docs/mailbox.md received": async (received) => {
    // The program itself has posted these, and has waited for the one that handled both.
    for (const id of ["evt_1", "evt_2"])
      assert.equal(await received("42", { id, text: "again" }), "duplicate");
    assert.equal(await received("42", { id: "evt_3", text: "bye" }), "handled");
  },
  "docs/mailbox.md default": (app, env) =>
    atBot(async (answered) => {
      const works = [];
      const body = JSON.stringify({ id: "1", thread: "8", text: "hello" });
      for (let delivery = 0; delivery < 2; delivery += 1) {
        const request = new Request(origin, { method: "POST", body });
        const { status } = await app.fetch(request, env, { waitUntil: (work) => works.push(work) });
        assert.equal(status, 202);
      }
      await Promise.all(works);
      assert.deepEqual(answered, ["hello"]);
    }),
  "docs/mailbox.md everyMinute": (everyMinute) => atBot(() => everyMinute(["7", "8"])),
  "docs/mailbox.md append": (append, env) =>
    inPostgres(env, async (client) => {
      await client.query("CREATE TABLE thread (log text, last text, fence bigint)");
      await client.query("INSERT INTO thread VALUES ('', '', 0)");
      const messages = (async function* () {
        yield { id: "1", value: "hello" };
      })();
      await append(messages, { fence: 5 });
      await assert.rejects(append([{ id: "2", value: "late" }], { fence: 4 }), /a later turn has written/);
      assert.equal((await client.query("SELECT log FROM thread")).rows[0].log, "hello");
    }),
  "docs/mailbox.md steer": (steer) =>
    atBot(async (answered) => {
      const batches = () => [[{ value: "no" }, { value: "yes" }]];
      await steer({ batches }, { signal: new AbortController().signal });
      assert.deepEqual(answered, ["no\nyes"]);
    }),
  "docs/mailbox.md thread": (thread) =>
    atBot(async (answered) => {
      const fail = async (messages) => {
        for await (const { id } of messages) throw new Error(`cannot answer ${id}`);
      };
      const post = () => thread.post({ id: "1", value: "hello" }, fail);
      for (let attempt = 0; attempt < 5; attempt += 1) await assert.rejects(post(), /cannot answer 1/);
      assert.deepEqual(answered, ['{"id":"1","value":"hello","attempts":5}']);
      assert.equal((await post()).status, "duplicate");
    }),
  "docs/webhooks.md bill": (bill) => handledAs("billed", bill),
  "docs/webhooks.md mail": (mail) => handledAs("mailed", mail),
  "docs/senders.md acme": async (acme) => {
    const time = String(Math.floor(Date.now() / 1_000));
    const signature = createHmac("sha256", "acme").update(`7.${time}.{}`).digest("hex");
    const headers = { "acme-signature": signature, "acme-time": time, "acme-id": "7" };
    const request = new Request(origin, { method: "POST", body: "{}", headers });
    const { id } = await acme("acme").verify(request, new TextEncoder().encode("{}"));
    assert.equal(id, "7");
  },
};

/** Two deliveries of one event, which another handler may have had. */
async function handledAs(answer, handle) {
  assert.deepEqual(await twice(() => handle(stripeDelivery('{"id":"evt_9"}'))), [answer, answer]);
}

/** Two deliveries of one event of Stripe; the second is not handled again. */
async function deliveredTwice(handle) {
  const body = '{"id":"evt_1","type":"checkout.session.completed"}';
  const statuses = [];
  for (let delivery = 0; delivery < 2; delivery += 1) {
    const response = await handle(stripeDelivery(body));
    const { status } = await bodyOf(response.clone());
    statuses.push(response.headers.get("idempotent-replayed") ?? status);
  }
  assert.ok(/^(true|replayed)$/.test(statuses[1]), `the second delivery was handled again: ${statuses}`);
}

/** Calls with the texts that bot.example gets. */
function atBot(call) {
  const texts = [];
  const bot = ({ body }) => {
    texts.push(body);
    return new Response();
  };
  return answering("https://bot.example", bot, () => call(texts));
}

/** Calls while a function answers requests to a site, by their options. */
async function answering(site, answer, call) {
  const { fetch } = globalThis;
  globalThis.fetch = async (input, init) =>
    String(input).startsWith(site) ? answer(init) : fetch(input, init);
  try {
    await call();
  } finally {
    globalThis.fetch = fetch;
  }
}

/** Calls with a client of PostgreSQL. Without it, test/support/postgres.ts has warned, and CI fails. */
async function inPostgres({ PGPORT }, call) {
  if (PGPORT === undefined) return;
  const client = new pg.Client();
  await client.connect();
  try {
    await call(client);
  } finally {
    await client.end();
  }
}

/** Calls with a function that sends a request to the server, which may listen already. */
async function overHttp(server, call) {
  if (!server.listening) await once(server.listen(0), "listening");
  const { port } = server.address();
  await call(async (request) => {
    const { method, headers } = request;
    const body = await request.arrayBuffer();
    return fetch(`http://localhost:${port}${new URL(request.url).pathname}`, { method, headers, body });
  });
  server.close();
  server.closeAllConnections();
}

/** The packed package's inbox, as the program that is called imports it. */
const inbox = () => import(pathToFileURL(createRequire(process.argv[1]).resolve("redlock-edge/inbox")).href);

/** The replies of the endpoints to one command. */
function onEach(env, ...command) {
  return Promise.all(
    [1, 2, 3].map(async (number) => {
      const headers = { authorization: `Bearer ${env[`UPSTASH_REDIS_REST_TOKEN_${number}`]}` };
      const url = env[`UPSTASH_REDIS_REST_URL_${number}`];
      const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(command) });
      assert.ok(answer.ok);
      return (await answer.json()).result;
    }),
  );
}

/** A delivery as Stripe signs it. */
function stripeDelivery(body) {
  const time = Math.floor(Date.now() / 1_000);
  const signature = createHmac("sha256", process.env.STRIPE_WEBHOOK_SECRET)
    .update(`${time}.${body}`)
    .digest("hex");
  const headers = { "stripe-signature": `t=${time},v1=${signature}`, "content-type": "application/json" };
  return new Request(`${origin}/webhooks/stripe`, { method: "POST", body, headers });
}

async function twice(request) {
  return [await bodyOf(await request()), await bodyOf(await request())];
}

async function bodyOf(response) {
  assert.ok(response.ok, `${response.status} ${await response.clone().text()}`);
  return response.json();
}

function keyed(path, type = "text/plain") {
  const headers = { "idempotency-key": "order-7", "content-type": type };
  return new Request(`${origin}${path}`, { method: "POST", body: '{"amount":10}', headers });
}
