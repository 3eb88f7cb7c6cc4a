// A Next.js route handler, for the Node.js and the Edge runtime: one payment per Idempotency-Key.

import { after } from "next/server";
import { endpointsFromEnv, Redlock } from "redlock-edge";
import { withIdempotency } from "redlock-edge/http";
import type { RunContext } from "redlock-edge/idempotency";

export const maxDuration = 20; // seconds

export async function POST(request: Request): Promise<Response> {
  const account = accountOf(request);
  if (account === undefined) return new Response(null, { status: 401 });
  return withIdempotency(request, (given, run) => pay(account, given, run), {
    // Not at module scope: `next build` runs that too, without the production variables.
    redlock: new Redlock({ endpoints: endpointsFromEnv(process.env) }),
    scope: account,
    waitUntil: (work) => after(work), // the promise itself: a function would start only after the response
    deadline: Date.now() + maxDuration * 1_000 - 1_500,
  });
}

async function pay(account: string, request: Request, run: RunContext | undefined): Promise<Response> {
  const paid = await fetch(process.env.LEDGER_URL ?? "https://ledger.example", {
    method: "POST",
    // Two accounts may choose the same key.
    headers: { "content-type": "application/json", "idempotency-key": `${account}:${run?.key}` },
    body: await request.text(),
    signal: request.signal, // aborts at the deadline and when the lease is lost
  });
  return Response.json(await paid.json(), { status: paid.status });
}

/** The account of the request's API key, from `API_KEYS`: `{ "key": "account", … }`. */
function accountOf(request: Request): string | undefined {
  const accounts = new Map<string, string>(Object.entries(JSON.parse(process.env.API_KEYS ?? "{}")));
  return accounts.get(request.headers.get("authorization")?.replace(/^Bearer /, "") ?? "");
}
