// Stripe's webhook on Vercel: it answers as soon as QStash has the event, and QStash calls ship.ts.

import { endpointsFromEnv, Redlock } from "redlock-edge";
import { type Delivery, withIdempotency } from "redlock-edge/http";
import type { RunContext } from "redlock-edge/idempotency";
import { stripe } from "redlock-edge/webhooks";

const maxDuration = 60; // seconds; the same number is in vercel.json
const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env) });
const provider = stripe({ secret: process.env.STRIPE_WEBHOOK_SECRET ?? "" });
const publish = `${process.env.QSTASH_URL}/v2/publish/${process.env.SHIP_URL}`;

export function POST(request: Request): Promise<Response> {
  const deadline = Date.now() + maxDuration * 1_000 - 1_500;
  return withIdempotency(request, enqueue, { redlock, provider, handler: "stripe", deadline });
}

async function enqueue(request: Request, _run: RunContext, { id }: Delivery): Promise<Response> {
  const { type, data } = (await request.json()) as { type: string; data: { object: { id: string } } };
  if (type !== "checkout.session.completed") return new Response(null, { status: 204 });
  const sent = await fetch(publish, {
    method: "POST",
    headers: { authorization: `Bearer ${process.env.QSTASH_TOKEN}`, "content-type": "application/json" },
    // The same text for every delivery of the event: ship.ts knows it by that.
    body: JSON.stringify({ event: id, order: data.object.id }),
    signal: request.signal,
  });
  await sent.body?.cancel();
  // After 502 the key is free, and Stripe delivers again.
  return new Response(null, { status: sent.ok ? 202 : 502 });
}
