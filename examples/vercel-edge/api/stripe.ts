// Stripe's webhook on Vercel's Edge runtime: every event is handled once.

import { waitUntil } from "@vercel/functions";
import { endpointsFromEnv, Redlock } from "redlock-edge";
import { withIdempotency } from "redlock-edge/http";
import { stripe } from "redlock-edge/webhooks";

export const config = { runtime: "edge" };

const redlock = new Redlock({ waitUntil, endpoints: endpointsFromEnv(process.env) });
const provider = stripe({ secret: process.env.STRIPE_WEBHOOK_SECRET ?? "" });
const orders = process.env.ORDERS_URL ?? "https://orders.example";

export function POST(request: Request): Promise<Response> {
  // The Edge runtime stops a function that has not begun to answer after 25 s.
  const deadline = Date.now() + 23_000;
  return withIdempotency(request, fulfil, { redlock, provider, handler: "fulfil", deadline });
}

async function fulfil(request: Request): Promise<Response> {
  const event = (await request.json()) as { type: string; data: { object: { id: string } } };
  if (event.type !== "checkout.session.completed") return new Response(null, { status: 204 });
  const fulfilled = await fetch(`${orders}/${encodeURIComponent(event.data.object.id)}`, {
    method: "PUT",
    signal: request.signal,
  });
  await fulfilled.body?.cancel();
  // After any status but 2xx the key is free, and Stripe sends the event again.
  return new Response(null, { status: fulfilled.ok ? 204 : 502 });
}
