import { type Context, Hono } from "hono";
import { idempotent } from "../../src/hono/index.ts";
import { withIdempotency } from "../../src/http/index.ts";
import { endpointsFromEnv, Redlock } from "../../src/index.ts";
import { patient } from "../support/beyond-tests.ts";

// What the tests ask for in workerd: each route answers with what its handler got.

interface Bindings {
  readonly [upstash: `UPSTASH_REDIS_REST_${string}`]: string;
}

interface Platform {
  waitUntil(work: Promise<unknown>): void;
}

async function echo(request: Request): Promise<Response> {
  const { cf, redirect } = request as Request & { readonly cf?: { readonly colo?: string } };
  return new Response(await request.text(), {
    status: 201,
    headers: { "x-request": `${cf?.colo} ${redirect}` },
  });
}

const app = new Hono<{ Bindings: Bindings }>();
const redlockOf = (env: Bindings) => new Redlock({ ...patient, endpoints: endpointsFromEnv(env) });
const redlock = (c: Context<{ Bindings: Bindings }>) => redlockOf(c.env);
app.post("/hono", idempotent({ redlock }), (c) => echo(c.req.raw));
app.post("/gone", idempotent({ redlock }), async (c) => {
  const answer = await echo(c.req.raw);
  // Longer than the client of the test stays.
  await new Promise((resolve) => setTimeout(resolve, 500));
  return answer;
});

export default {
  fetch(request: Request, env: Bindings, platform: Platform): Response | Promise<Response> {
    const { pathname } = new URL(request.url);
    if (pathname !== "/plain") return app.fetch(request, env, platform as never);
    return withIdempotency(request, echo, { redlock: redlockOf(env), waitUntil: platform });
  },
};
