// GitHub's webhook on Vercel, as a function on the Node.js runtime: every push is deployed once.

import { endpointsFromEnv, Redlock } from "redlock-edge";
import { withIdempotency } from "redlock-edge/http";
import { github } from "redlock-edge/webhooks";

const maxDuration = 60; // seconds; the same number is in vercel.json
const redlock = new Redlock({ endpoints: endpointsFromEnv(process.env) });
const provider = github({ secret: process.env.GITHUB_WEBHOOK_SECRET ?? "" });
const deployments = process.env.DEPLOYMENTS_URL ?? "https://deployments.example";

export function POST(request: Request): Promise<Response> {
  return withIdempotency(request, deploy, {
    redlock,
    provider,
    handler: "deploy", // part of the key: the route may move, and others may share the secret
    deadline: Date.now() + maxDuration * 1_000 - 1_500, // early enough to free the key before Vercel stops the code
  });
}

async function deploy(request: Request): Promise<Response> {
  // The body is signed, so it says what happened. The header X-GitHub-Event is not signed.
  const { ref, after } = (await request.json()) as { ref?: string; after?: string };
  if (ref !== "refs/heads/main" || after === undefined) return new Response(null, { status: 204 });
  const deployed = await fetch(`${deployments}/${after}`, { method: "PUT", signal: request.signal });
  await deployed.body?.cancel();
  // After 502 the key is free. GitHub does not retry by itself: redeliver by hand, or over its API.
  return new Response(null, { status: deployed.ok ? 204 : 502 });
}
