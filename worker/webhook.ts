import type { Context } from "hono";
import { Idempotency } from "../src/idempotency/index.ts";
import type { WebhookProvider } from "../src/webhooks/index.ts";
import { type Bindings, database, redlockOf } from "./bindings.ts";
import { Cost } from "./cost.ts";
import { writeEffect } from "./effect.ts";
import type { WebhookEvent } from "./event.ts";
import { type JournalEntry, writeJournal } from "./journal.ts";
import { problemOf, problemResponse } from "./problem.ts";
import { withFence } from "./with-fence.ts";

/** Somebody who sends webhooks to this Worker. */
export interface Sender {
  readonly name: string;
  provider(env: Bindings): WebhookProvider;
  /** What a genuine delivery is about. */
  event(request: Request, body: Uint8Array, id: string): WebhookEvent;
}

// Longer than any provider goes on sending again.
const retention = 7 * 24 * 60 * 60 * 1_000;

// GitHub hangs up after 10 s. A duplicate waits for the first run (3 s); if that fails, it runs itself, and
// waits for the lock (2.5 s). With a second for the last request of each that leaves time for the write.
const waitForRun = 3_000;
const waitForLock = 2_500;

// Waits this short would be over after a few of the default pauses of up to 1 s. Much shorter ones would not
// help: the more often many contenders ask, the more often they get in each other's way.
const backoff = { min: 100, max: 500 };

/**
 * Receives one webhook: verify, run once per delivery, lock the entity, write under the lock's fence. Whatever
 * goes wrong is answered so that the sender tries again exactly if that can help.
 *
 * @example
 * app.post("/webhooks/github", (context) => receive(context, githubSender));
 */
export async function receive(context: Context<{ Bindings: Bindings }>, sender: Sender): Promise<Response> {
  const { env, executionCtx } = context;
  const at = Date.now();
  const cost = new Cost();
  let entry: Partial<JournalEntry> = {};
  let response: Response;
  try {
    const delivery = await verified(context, sender);
    const { id, event, provider } = delivery;
    entry = { delivery: id, event: event.name, entity: event.entity };
    const db = database(env);
    const redlock = redlockOf(env, { waitUntil: executionCtx, backoff, onEvent: cost.ofLock });
    const idempotency = new Idempotency(redlock, { retention, wait: waitForRun, onEvent: cost.ofRun });
    const { status, value } = await idempotency.run(id, { scope: [provider] }, (run) =>
      withFence(redlock, event.entity, { wait: waitForLock, run }, (fence) =>
        writeEffect(db, {
          deliveryKey: `${provider}:${id}`,
          delivery: id,
          entity: event.entity,
          event: event.name,
          fence,
          at: Date.now(),
        }),
      ),
    );
    response = new Response(`${JSON.stringify(value)}\n`, {
      headers: {
        "content-type": "application/json",
        ...(status === "replayed" && { "idempotent-replayed": "true" }),
      },
    });
    entry = { ...entry, outcome: status, fence: status === "executed" ? value.fence : null };
  } catch (error) {
    const problem = problemOf(error);
    if (problem.status === 500) console.error(error);
    response = problemResponse(problem);
    entry = { ...entry, outcome: problem.outcome };
  }
  const { requests, commands } = cost;
  const ms = Date.now() - at;
  const { status } = response;
  const journaled = { ...emptyEntry, ...entry, provider: sender.name, at, status, requests, commands, ms };
  // After the answer: the sender need not wait for it, and a failure of the journal is no failure of the event.
  if (env.DB) executionCtx.waitUntil(writeJournal(env.DB, journaled).catch(console.error));
  return response;
}

const emptyEntry = { delivery: null, event: null, entity: null, outcome: "failed", fence: null } as const;

/** A delivery that is what it claims to be. */
interface Delivery {
  readonly provider: string;
  readonly id: string;
  readonly event: WebhookEvent;
}

/** Verifies a delivery and reads what it is about; no request leaves the Worker before that is done. */
async function verified(context: Context<{ Bindings: Bindings }>, sender: Sender): Promise<Delivery> {
  const provider = sender.provider(context.env);
  const body = new Uint8Array(await context.req.arrayBuffer());
  const { raw } = context.req;
  const { id } = await provider.verify(raw, body);
  return { provider: provider.name, id, event: sender.event(raw, body, id) };
}
