import { Hono } from "hono";
import { idempotent } from "../../src/hono/index.ts";
import { endpointsFromEnv, Redlock } from "../../src/index.ts";
import { github } from "../../src/webhooks/index.ts";

// The same delivery handled twice: with run and lock as separate operations, and together. Bundled for workerd by
// delivery.mjs.

type Bindings = Record<`UPSTASH_REDIS_REST_${string}`, string> & {
  readonly SECRET: string;
  readonly DIALECT: "redis" | "upstash";
};
interface Env {
  Bindings: Bindings;
}

const app = new Hono<Env>();
const redlockOf = ({ env }: { env: Bindings }) => {
  const endpoints = endpointsFromEnv(env).map((endpoint) => ({ ...endpoint, dialect: env.DIALECT }));
  return new Redlock({ endpoints, timeout: 5_000 });
};
const providerOf = ({ env }: { env: Bindings }) => github({ secret: env.SECRET });

app.post("/separate", idempotent<Env>({ redlock: redlockOf, provider: providerOf }), async (c) => {
  const { entity } = await c.req.json();
  return redlockOf(c).using(entity, { fencing: true }, ({ fence }) => c.json({ fence }));
});

const together = idempotent<Env>({
  redlock: redlockOf,
  provider: providerOf,
  lock: (_, { body }) => JSON.parse(new TextDecoder().decode(body)).entity,
});
app.post("/together", together, (c) => c.json({ fence: c.var.idempotency.fence }));

export default app;
