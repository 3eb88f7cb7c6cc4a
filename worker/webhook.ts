import type { Context } from "hono";
import { idempotent, type LockedRun, type WebhookVariables } from "../src/hono/index.ts";
import { endpointsFromEnv, Redlock } from "../src/index.ts";
import type { Bindings } from "./bindings.ts";
import { type WrittenEffect, writeEffect } from "./effect.ts";
import { eventOf, providerOf, type Sender, type WebhookEvent } from "./senders.ts";

/** The Worker's environment, as Hono types it. */
export interface WorkerEnv {
  Bindings: Bindings;
  Variables: Variables;
}

/** What the steps of a route pass to each other: `webhook` and `idempotency` of `idempotent`, and what it is about. */
interface Variables extends WebhookVariables<LockedRun> {
  /** Absent until the delivery is verified. */
  event?: WebhookEvent;
  /** Absent until the effect is written, or found. */
  written?: WrittenEffect;
}

// ms. Renewed while the handler runs, and short because after a crash the entity stays locked for it.
const lease = 10_000;

// ms. The default pauses of up to 1 s would use up a short wait after a few attempts.
const backoff = { min: 100, max: 500 };

/**
 * The steps that receive one sender's webhooks: verify the delivery, run once for it under the lock of its entity, and
 * write the effect with the lock's fence. Every failure is answered so that the sender tries again where that can help.
 *
 * @example
 * app.post("/webhooks/github", ...receive(github));
 */
export function receive(sender: Sender) {
  const once = idempotent<WorkerEnv>({
    redlock: ({ env }) => new Redlock({ endpoints: endpointsFromEnv(env), backoff }),
    provider: ({ env }) => providerOf(sender, env),
    handler: sender.name,
    // Called with a verified delivery, before any request to Redis.
    lock(c, delivery) {
      const event = eventOf(sender, c.req.raw, delivery);
      c.set("event", event);
      return event.entity;
    },
    lease,
    // A duplicate waits for the first run, and another event of the entity for the lock. The other half of the sender's
    // time is for the requests and the write.
    wait: sender.timeout / 2,
  });
  return [once, act] as const;
}

/** Writes the effect. Only the first delivery comes here, or the first one that succeeds. */
async function act(c: Context<WorkerEnv>): Promise<Response> {
  const { webhook, event, idempotency: run } = c.var;
  if (!event) throw new TypeError("act must come after idempotent()");
  const written = await writeEffect(c.env.DB, webhook, event, run.fence);
  c.set("written", written);
  return c.json(written.effect);
}
