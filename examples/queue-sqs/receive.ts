// Stripe's webhook on Lambda, behind a function URL or an HTTP API: it answers as soon as SQS has the event.

import { SendMessageCommand, SQSClient } from "@aws-sdk/client-sqs";
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
const sqs = new SQSClient();

const once = idempotent<Env>({
  redlock,
  provider,
  deadline: (c) => Date.now() + c.env.lambdaContext.getRemainingTimeInMillis() - 1_500,
});
const app = new Hono<Env>().post("/webhooks/stripe", once, async (c) => {
  const { type, data } = await c.req.json<{ type: string; data: { object: { id: string } } }>();
  if (type !== "checkout.session.completed") return c.body(null, 204);
  const message = new SendMessageCommand({
    QueueUrl: process.env.QUEUE_URL,
    MessageBody: JSON.stringify({ event: c.var.webhook.id, order: data.object.id }),
  });
  // If this throws, the key is free, and Stripe delivers again.
  await sqs.send(message, { abortSignal: c.req.raw.signal });
  return c.body(null, 202);
});
export const handler = handle(app);
