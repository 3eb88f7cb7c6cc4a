// A webhook: the service is called once per delivery.

import { after } from "next/server";
import { endpointsFromEnv, Redlock } from "redlock-edge";
import { withIdempotency } from "redlock-edge/http";
import { github } from "redlock-edge/webhooks";

export function POST(request) {
  return withIdempotency(request, deliver, {
    redlock: new Redlock({ endpoints: endpointsFromEnv(process.env) }),
    provider: github({ secret: process.env.GITHUB_WEBHOOK_SECRET }),
    waitUntil: (work) => after(work),
  });
}

async function deliver(request, run, { id }) {
  const body = await request.text();
  const called = await fetch(`${process.env.LEDGER_URL}/${id}`, { method: "PUT", body, signal: run.signal });
  return Response.json(await called.json(), { status: called.status });
}
