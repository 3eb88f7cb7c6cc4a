// One payment per Idempotency-Key and account; an account is closed by one request at a time.

import { Hono } from "hono";
import { endpointsFromEnv, Redlock } from "redlock-edge";
import { idempotent, lock } from "redlock-edge/hono";

const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env) });
const ledger = process.env.LEDGER_URL ?? "https://ledger.example";
/** Accounts by API key. */
const accounts = new Map<string, string>(Object.entries(JSON.parse(process.env.API_KEYS ?? "{}")));

interface Env {
  Variables: { account: string };
}

export const app = new Hono<Env>();

app.use(async function authenticated(c, next) {
  const account = accounts.get(c.req.header("authorization")?.replace(/^Bearer /, "") ?? "");
  if (account === undefined) return c.body(null, 401);
  c.set("account", account);
  return next();
});

app.post("/payments", idempotent<Env>({ redlock, scope: (c) => c.get("account") }), async (c) => {
  const paid = await fetch(`${ledger}/payments`, {
    method: "POST",
    // Two accounts may choose the same key.
    headers: {
      "content-type": "application/json",
      "idempotency-key": `${c.get("account")}:${c.var.idempotency?.key}`,
    },
    body: await c.req.text(),
    signal: c.req.raw.signal, // the run's signal: a client that disconnects does not abort a payment half way
  });
  return new Response(await paid.arrayBuffer(), {
    status: paid.status,
    headers: { "content-type": "application/json" },
  });
});

app.delete(
  "/account",
  lock<Env>({ redlock, resource: (c) => `account:${c.get("account")}`, fencing: true }),
  async (c) => {
    const { fence, signal } = c.var.lock;
    const closed = await fetch(`${ledger}/accounts/${c.get("account")}?fence=${fence}`, {
      method: "DELETE",
      signal,
    });
    await closed.body?.cancel();
    return c.body(null, closed.ok ? 204 : 502);
  },
);
