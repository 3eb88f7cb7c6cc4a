// QStash's consumer on Vercel: each order is shipped once, however often QStash delivers its message.

import { endpointsFromEnv, Redlock } from "redlock-edge";
import { withIdempotency } from "redlock-edge/http";
import { qstash } from "redlock-edge/webhooks";

const maxDuration = 60; // seconds; the same number is in vercel.json
const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env) });
const { QSTASH_CURRENT_SIGNING_KEY: current = "", QSTASH_NEXT_SIGNING_KEY: next = "" } = process.env;
const warehouse = process.env.WAREHOUSE_URL ?? "https://warehouse.example";
// The body has the event's id, and is signed. Two messages about one event have the same body, and so the same key.
const provider = qstash({
  secret: [current, next],
  name: "qstash",
  id: "body",
  url: process.env.SHIP_URL ?? "https://shop.example/api/ship",
});

export function POST(request: Request): Promise<Response> {
  return withIdempotency(request, ship, {
    redlock,
    provider,
    handler: "ship", // another function that QStash calls has the same keys to verify by, and a name of its own
    lease: 10_000, // shorter than QStash's first pause of 12 s: after a crash, the first retry finds the key free
    deadline: Date.now() + maxDuration * 1_000 - 1_500,
  });
}

async function ship(request: Request): Promise<Response> {
  const { event, order } = (await request.json()) as { event: string; order: string };
  const shipped = await fetch(`${warehouse}/shipments`, {
    method: "POST",
    // After a crash this is sent again. By the key the warehouse knows that it is the same shipment.
    headers: { "content-type": "application/json", "idempotency-key": event },
    body: JSON.stringify({ order }),
    signal: request.signal,
  });
  await shipped.body?.cancel();
  if (shipped.ok) return new Response(null, { status: 204 });
  // What the warehouse refuses for good goes to QStash's dead letter queue at once. Anything else QStash sends again.
  if (shipped.status !== 422) return new Response(null, { status: 502 });
  return new Response(null, { status: 489, headers: { "upstash-nonretryable-error": "true" } });
}
