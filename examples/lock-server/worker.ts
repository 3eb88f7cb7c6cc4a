// A lock server, and a webhook that uses it: everything on Cloudflare, and no Redis anywhere. Other platforms reach the
// server by HTTPS, at the address of this Worker and with its token.

import { Hono } from "hono";
import { Redlock } from "redlock-edge";
import { idempotent } from "redlock-edge/hono";
import { github } from "redlock-edge/webhooks";
import { durableEndpoint, type LockServerNamespace, lockServerApp } from "redlock-edge-server";

export { LockServer } from "redlock-edge-server";

interface Env {
  readonly LOCKS: LockServerNamespace;
  readonly LOCKS_TOKEN: string;
  /** The former token, while its users change. */
  readonly LOCKS_TOKEN_OLD?: string;
  readonly GITHUB_WEBHOOK_SECRET: string;
}

const locks = lockServerApp<Env>({
  locks: ({ LOCKS }) => LOCKS,
  tokens: ({ LOCKS_TOKEN, LOCKS_TOKEN_OLD }) => [LOCKS_TOKEN, LOCKS_TOKEN_OLD],
});

const app = new Hono<{ Bindings: Env }>();

app.post(
  "/webhooks/github",
  idempotent<{ Bindings: Env }>({
    redlock: (c) => new Redlock({ endpoints: [durableEndpoint(c.env.LOCKS)] }),
    provider: (c) => github({ secret: c.env.GITHUB_WEBHOOK_SECRET }),
    lock: (_, { body }) => `repository:${JSON.parse(new TextDecoder().decode(body)).repository.id}`,
  }),
  (c) => c.json({ delivery: c.var.webhook.id, fence: c.var.idempotency.fence }),
);
app.all("*", (c) => locks.fetch(c.req.raw, c.env));

export default app;
