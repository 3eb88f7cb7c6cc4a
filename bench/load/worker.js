// The README's webhook, and beside it a handler that sends the same requests by bare `fetch`.
import { Hono } from "hono";
import { idempotent } from "../../dist/hono/index.js";
import { endpointsFromEnv, Redlock } from "../../dist/index.js";
import { stripe } from "../../dist/webhooks/index.js";

const day = 86_400_000;
// As Upstash's own: with the commands that compare and set.
const endpointsOf = (env) => endpointsFromEnv(env).map((each) => ({ ...each, dialect: "upstash" }));
const app = new Hono();

app.post(
  "/redlock-edge",
  idempotent({
    redlock: (c) => new Redlock({ endpoints: endpointsOf(c.env) }),
    provider: (c) => stripe({ secret: c.env.STRIPE_WEBHOOK_SECRET }),
  }),
  async (c) => {
    await c.req.json();
    return c.json({ received: true });
  },
);

app.post("/bare", async (c) => {
  const body = new Uint8Array(await c.req.arrayBuffer());
  const { id } = await stripe({ secret: c.env.STRIPE_WEBHOOK_SECRET }).verify(c.req.raw, body);
  const [key, token] = [`bare:${id}`, `P1 ${crypto.randomUUID()}`];
  const ask = (command) => Promise.all(endpointsOf(c.env).map((endpoint) => send(endpoint, command)));
  const found = await ask(["SET", key, token, "NX", "GET", "PX", 30_000]);
  const first = found.filter((reply) => reply === null).length > 1;
  if (first) {
    const result = JSON.stringify({ received: true });
    await ask(["SET", key, result, "IFEQ", token, "PX", day]);
  }
  return c.json({ received: true }, 200, first ? {} : { "idempotent-replayed": "true" });
});

async function send({ url, token }, command) {
  const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(command) });
  return (await response.json()).result;
}

export default app;
