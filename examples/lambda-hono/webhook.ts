// Stripe's webhook on Lambda, behind a function URL or an HTTP API: every event is handled once.

import { Hono } from "hono";
import { handle, type LambdaContext } from "hono/aws-lambda";
import { endpointsFromEnv, Redlock } from "redlock-edge";
import { idempotent } from "redlock-edge/hono";
import { stripe } from "redlock-edge/webhooks";

interface Env {
  Bindings: { lambdaContext: LambdaContext };
}
const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env) });
const provider = stripe({ secret: process.env.STRIPE_WEBHOOK_SECRET ?? "" });

const once = idempotent<Env>({
  redlock,
  provider,
  deadline: (c) => Date.now() + c.env.lambdaContext.getRemainingTimeInMillis() - 1_500,
});
const app = new Hono<Env>().post("/webhooks/stripe", once, (c) =>
  c.json({ id: c.var.webhook.id, run: c.var.idempotency.token }),
);
export const handler = handle(app);
