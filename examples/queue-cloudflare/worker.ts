// Stripe's webhook on a Worker: it answers as soon as a Cloudflare Queue has the event. The consumer ships each order once.

import type { Message, MessageBatch, Queue } from "@cloudflare/workers-types";
import { Hono } from "hono";
import { endpointsFromEnv, Redlock } from "redlock-edge";
import { idempotent } from "redlock-edge/hono";
import { Idempotency, InProgressError } from "redlock-edge/idempotency";
import { stripe } from "redlock-edge/webhooks";

type Shipment = { readonly event: string; readonly order: string };
type Bindings = { SHIPMENTS: Queue<Shipment>; STRIPE_WEBHOOK_SECRET: string; WAREHOUSE_URL: string };

const app = new Hono<{ Bindings: Bindings }>();

app.post(
  "/webhooks/stripe",
  idempotent<{ Bindings: Bindings }>({
    redlock: (c) => new Redlock({ endpoints: endpointsFromEnv(c.env) }),
    provider: (c) => stripe({ secret: c.env.STRIPE_WEBHOOK_SECRET }),
  }),
  async (c) => {
    const { type, data } = await c.req.json<{ type: string; data: { object: { id: string } } }>();
    if (type !== "checkout.session.completed") return c.body(null, 204);
    // If this throws, the key is free, and Stripe delivers again.
    await c.env.SHIPMENTS.send({ event: c.var.webhook.id, order: data.object.id });
    return c.body(null, 202);
  },
);

export default {
  fetch: app.fetch,
  async queue(batch: MessageBatch<Shipment>, env: Bindings): Promise<void> {
    const runs = new Idempotency(new Redlock({ endpoints: endpointsFromEnv(env) }), {
      retention: 17 * 86_400_000, // a queue keeps a message for up to 14 days, and Stripe may send its event again for 3
    });
    await Promise.all(batch.messages.map((message) => shipOnce(message, runs, env.WAREHOUSE_URL)));
  },
};

async function shipOnce(message: Message<Shipment>, runs: Idempotency, warehouse: string): Promise<void> {
  try {
    const { event, order } = message.body;
    await runs.run(event, { scope: "ship" }, async ({ signal }) => {
      const shipped = await fetch(`${warehouse}/shipments`, {
        method: "POST",
        // After a crash this is sent again. By the key the warehouse knows that it is the same shipment.
        headers: { "content-type": "application/json", "idempotency-key": event },
        body: JSON.stringify({ order }),
        signal,
      });
      await shipped.body?.cancel();
      if (!shipped.ok) throw new Error(`order ${order}: the warehouse answered ${shipped.status}`);
    });
    message.ack();
  } catch (error) {
    // Another invocation ships it now. If that counted as done and it died, nobody would ship it.
    if (error instanceof InProgressError) {
      return message.retry({ delaySeconds: Math.ceil(error.retryAfter / 1_000) });
    }
    console.error(error);
    message.retry(); // after retry_delay
  }
}
