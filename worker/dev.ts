// The Worker of `npm run dev`: its page has buttons that send webhooks, which the Worker signs for itself. wrangler.toml
// names index.ts, so none of this is deployed.
import type { ExecutionContext } from "hono";
import { requireOwnPage } from "./access.ts";
import { createApp } from "./app.ts";
import { isSampleId, newSampleId, sampleButtons, sampleRequest } from "./sample.ts";
import { providerOf, senders } from "./senders.ts";

/** Copies that one press of "send it again" sends at once. */
const copies = 5;
// ms. The page that follows shows the deliveries if their rows are written by then.
const journalWait = 1_000;

// Everybody on this computer may see it; another name that leads here is asked for the secret.
const app = createApp({ tryIt: sampleButtons, openOnLoopback: true });

app.post("/samples", requireOwnPage, async function sendSamples(c) {
  // Throws where the sender is not set up.
  providerOf(senders.stripe, c.env);
  const { send, id } = await c.req.parseBody();
  const again = send === "again" && typeof id === "string" && isSampleId(id);
  const sampleId = again ? id : newSampleId();
  const secret = send === "forged" ? "whsec_another_secret" : (c.env.STRIPE_WEBHOOK_SECRET ?? "");
  const written: Promise<unknown>[] = [];
  const context: ExecutionContext = {
    waitUntil(promise) {
      written.push(promise);
      c.executionCtx.waitUntil(promise);
    },
    passThroughOnException: () => c.executionCtx.passThroughOnException(),
    props: {},
  };
  const requests = Array.from({ length: again ? copies : 1 }, () =>
    sampleRequest(new URL(senders.stripe.path, c.req.url), sampleId, secret),
  );
  await Promise.all(requests.map(async (request) => app.fetch(await request, c.env, context)));
  await Promise.race([
    Promise.allSettled(written),
    new Promise((resolve) => setTimeout(resolve, journalWait)),
  ]);
  return c.redirect("/", 303);
});

export default app;
