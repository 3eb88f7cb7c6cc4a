// Stripe's webhook on a Cloudflare Worker: every event is handled once, however often Stripe delivers it.

import { Hono } from "hono";
import { endpointsFromEnv, Redlock } from "redlock-edge";
import { idempotent } from "redlock-edge/hono";
import { stripe } from "redlock-edge/webhooks";

interface Env {
  Bindings: { STRIPE_WEBHOOK_SECRET: string; ORDERS_URL: string };
}

const app = new Hono<Env>();

app.post(
  "/webhooks/stripe",
  idempotent<Env>({
    redlock: (c) => new Redlock({ endpoints: endpointsFromEnv(c.env) }),
    provider: (c) => stripe({ secret: c.env.STRIPE_WEBHOOK_SECRET }), // a bad signature costs no Redis command
    retention: 7 * 86_400_000, // Stripe retries for three days
  }),
  async (c) => {
    const event = await c.req.json<{ type: string; data: { object: { id: string } } }>();
    if (event.type !== "checkout.session.completed") return c.body(null, 204);
    const fulfilled = await fetch(`${c.env.ORDERS_URL}/${event.data.object.id}`, {
      method: "PUT", // after a crash this may be sent again; the id makes it the same order
      signal: c.req.raw.signal, // aborts when the run is lost
    });
    return c.body(null, fulfilled.ok ? 204 : 502); // after 502 the key is free, and Stripe delivers again
  },
);

export default app;
