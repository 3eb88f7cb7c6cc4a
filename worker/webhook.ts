import type { Context, Next } from "hono";
import { type IdempotencyVariables, idempotent } from "../src/hono/index.ts";
import type { HttpEvent } from "../src/http/index.ts";
import type { Redlock } from "../src/index.ts";
import type { WebhookProvider } from "../src/webhooks/index.ts";
import { type Bindings, database, redlockOf } from "./bindings.ts";
import { Cost } from "./cost.ts";
import { writeEffect } from "./effect.ts";
import type { WebhookEvent } from "./event.ts";
import { writeJournal } from "./journal.ts";
import type { Outcome } from "./page.ts";
import { problemOf } from "./problem.ts";
import { providerOf, type Sender } from "./senders.ts";
import { withFence } from "./with-fence.ts";

/** A delivery that is what it claims to be. */
interface Delivery {
  /** The provider's name and what the id is unique within, and the id. */
  readonly key: string;
  readonly id: string;
  readonly event: WebhookEvent;
}

/** What the steps of receiving a webhook leave to each other. */
interface Variables extends IdempotencyVariables {
  cost: Cost;
  redlock: Redlock;
  /** None until it is known to be genuine. */
  delivery?: Delivery;
  /** Of the effect; none until it is written. */
  fence?: number;
  /** What was answered instead of running, or of the run's answer. */
  refusal?: Extract<HttpEvent, { type: "refused" }>;
}

/** What Hono is told about the Worker. */
export interface WorkerEnv {
  Bindings: Bindings;
  Variables: Variables;
}

type Step = (c: Context<WorkerEnv>, next: Next) => Promise<Response | undefined>;

// A duplicate waits for the first run; if that fails, it runs itself, and waits for the lock. Of the 10 s after
// which GitHub hangs up that leaves one for the last request of each, and time for the write.
const waitForRun = 0.3;
const waitForLock = 0.25;

// Waits this short would be over after a few of the default pauses of up to 1 s. Much shorter ones would not
// help: the more often many contenders ask, the more often they get in each other's way.
const backoff = { min: 100, max: 500 };

/**
 * Receives the webhooks of one sender: verify, run once per delivery, lock the entity, write under the lock's
 * fence. Whatever goes wrong is answered so that the sender tries again exactly if that can help.
 *
 * @example
 * app.post(senders.github.path, ...receive(senders.github));
 */
export function receive(sender: Sender): [Step, Step, Step] {
  return [journaled(sender), once(sender), acting(sender)];
}

/** Writes down what became of the delivery. */
function journaled({ name }: Sender): Step {
  return async function journaled(c, next) {
    const at = Date.now();
    const cost = new Cost();
    c.set("cost", cost);
    await next();
    const { DB } = c.env;
    if (!DB) return undefined;
    const { delivery, fence = null } = c.var;
    const outcome = outcomeOf(c);
    const row = {
      at,
      provider: name,
      delivery: delivery?.id ?? null,
      event: delivery?.event.name ?? null,
      entity: delivery?.event.entity ?? null,
      outcome,
      status: c.res.status,
      fence: outcome === "executed" ? fence : null,
      requests: cost.requests,
      commands: cost.commands,
      ms: Date.now() - at,
    };
    // After the answer: the sender need not wait for it, and a failure of the journal is no failure of the event.
    c.executionCtx.waitUntil(writeJournal(DB, row).catch(console.error));
    return undefined;
  };
}

function outcomeOf({ var: { refusal }, error, res }: Context<WorkerEnv>): Outcome {
  if (refusal?.code === "IN_PROGRESS" || refusal?.code === "ABORTED") return "busy";
  if (refusal) return refusal.status < 500 ? "refused" : "failed";
  if (error) return problemOf(error).outcome;
  return res.headers.has("idempotent-replayed") ? "replayed" : "executed";
}

/** Lets a delivery pass if it is genuine and the first, or the first that succeeds. */
function once(sender: Sender): Step {
  return async function once(c, next) {
    const provider = understood(c, sender);
    // Whatever is missing is noticed before Redis is asked for anything.
    database(c.env);
    const { cost } = c.var;
    const redlock = redlockOf(c.env, { waitUntil: c.executionCtx, backoff, onEvent: cost.ofLock });
    c.set("redlock", redlock);
    function onEvent(event: HttpEvent): void {
      cost.ofRun(event);
      if (event.type !== "refused") return;
      c.set("refusal", event);
      if (event.status === 500) console.error(event.error);
    }
    // Made for this request, because what it costs is this request's.
    const guard = idempotent({ redlock, provider, wait: sender.timeout * waitForRun, onEvent });
    return (await guard(c as unknown as Parameters<typeof guard>[0], next)) ?? undefined;
  };
}

/**
 * The sender's provider, which also reads what a genuine delivery is about: what cannot be understood never gets
 * to Redis, and the journal knows it of duplicates, too.
 */
function understood(c: Context<WorkerEnv>, sender: Sender): WebhookProvider {
  const provider = providerOf(sender, c.env);
  const { name } = provider;
  return {
    name,
    async verify(request, body) {
      const verified = await provider.verify(request, body);
      const { id, scope = [] } = verified;
      const event = sender.event(request, body, id);
      c.set("delivery", { key: [name, ...scope, id].join(":"), id, event });
      return verified;
    },
  };
}

/** Acts on a delivery, as the only one to do so. */
function acting({ timeout }: Sender): Step {
  return async function act(c) {
    const { redlock, delivery, idempotency } = c.var;
    const { key, id, event } = delivery!;
    if (event.challenge !== undefined) return c.text(event.challenge);
    const options = { wait: timeout * waitForLock, run: idempotency! };
    const effect = await withFence(redlock, event.entity, options, (fence) =>
      writeEffect(database(c.env), {
        deliveryKey: key,
        delivery: id,
        entity: event.entity,
        event: event.name,
        fence,
        at: Date.now(),
      }),
    );
    c.set("fence", effect.fence);
    return c.json(effect);
  };
}
