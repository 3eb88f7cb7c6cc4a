// A Hono app as a route handler: the service is called once per Idempotency-Key.

import { Hono } from "hono";
import { handle } from "hono/vercel";
import { endpointsFromEnv, Redlock } from "redlock-edge";
import { idempotent } from "redlock-edge/hono";

const app = new Hono();
const redlock = () => new Redlock({ endpoints: endpointsFromEnv(process.env) });
// More than Next.js hands over behind a proxy, by default.
const maxRequestBody = 12_000_000;
app.post("*", idempotent({ redlock, scope: "account", maxRequestBody }), async (c) => {
  const { signal } = c.req.raw;
  const called = await fetch(process.env.LEDGER_URL, { method: "POST", body: await c.req.text(), signal });
  return c.json(await called.json(), called.status);
});

export const POST = handle(app);
