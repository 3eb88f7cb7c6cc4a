import type { Context, MiddlewareHandler, Next } from "hono";
import { type IdempotencyVariables, idempotent, type LockedRun } from "../src/hono/index.ts";
import type { HttpEvent } from "../src/http/index.ts";
import { type Bindings, database, redlockOf } from "./bindings.ts";
import { Cost } from "./cost.ts";
import { type WrittenEffect, writeEffect } from "./effect.ts";
import type { WebhookEvent } from "./event.ts";
import { type JournalEntry, writeJournal } from "./journal.ts";
import { problemOf } from "./problem.ts";
import { reasonOf } from "./reason.ts";
import type { Outcome } from "./rows.ts";
import { providerOf, type Sender } from "./senders.ts";

/** By what a request may see what was delivered: the cookie of a browser, the secret in a header, or a local address. */
export type Reader = "session" | "program" | "local";

/** What the steps pass to each other. */
interface Variables extends IdempotencyVariables<LockedRun> {
  /** Who asks; absent for a stranger, as senders are. */
  reader: Reader | undefined;
  cost: Cost;
  /** What the delivery is about; absent until it is verified. */
  event?: WebhookEvent;
  /** The effect; absent until it is written, or found. */
  written?: WrittenEffect;
  /** Why a problem was answered instead of the handler's response. */
  refusal?: Extract<HttpEvent, { type: "refused" }>;
}

/** The Worker's environment, as Hono types it. */
export interface WorkerEnv {
  Bindings: Bindings;
  Variables: Variables;
}

type Step = (c: Context<WorkerEnv>, next: Next) => Promise<Response | undefined>;

// Share of the sender's timeout. A duplicate waits for the first run, another delivery about the same entity for the
// lock. Of GitHub's 10 s this leaves time for the requests and the write.
const waitShare = 0.5;

// ms. Renewed while the handler runs, and short because after a crash the entity stays locked for it.
const lease = 10_000;

// ms. The default pauses of up to 1 s would use up waits this short after a few attempts. Much shorter pauses would
// not help: the more often many contenders try, the more often they block each other.
const backoff = { min: 100, max: 500 };

/**
 * The steps that receive one sender's webhooks: verify, run once per delivery under the lock of its entity, write with
 * the fence and the delivery's key. Every failure is answered so that the sender tries again if, and only if, that can help.
 *
 * @example
 * app.post(senders.github.path, ...receive(senders.github));
 */
export function receive(sender: Sender): [Step, Step, Step] {
  return [journalDelivery(sender), runOnce(sender), applyEffect];
}

/** Outermost step: writes the outcome into the journal. */
function journalDelivery(sender: Sender): Step {
  return async function journalDelivery(c, next) {
    const at = Date.now();
    c.set("cost", new Cost());
    await next();
    const { DB } = c.env;
    if (!DB) return undefined;
    // After the answer: the sender need not wait for it, and a failure of the journal is not one of the event.
    c.executionCtx.waitUntil(writeJournal(DB, journalEntry(c, sender, at)).catch(console.error));
    return undefined;
  };
}

/** @param at when the request arrived, ms since 1970 */
function journalEntry(c: Context<WorkerEnv>, { name }: Sender, at: number): JournalEntry {
  const { cost, webhook, event, written, refusal } = c.var;
  const outcome = outcomeOf(c);
  const reason = reasonOf({ refusal, error: c.error });
  return {
    at,
    provider: name,
    // An id without an event says nothing: its delivery was refused.
    delivery: (event && webhook?.id) ?? null,
    event: event?.name ?? null,
    entity: event?.entity ?? null,
    outcome,
    status: c.res.status,
    fence: (outcome === "executed" && written?.effect.fence) || null,
    requests: cost.requests,
    commands: cost.commands,
    ms: Date.now() - at,
    reason: reason?.text ?? null,
    votes: reason?.votes ?? null,
  };
}

function outcomeOf({ var: { refusal, written }, error, res }: Context<WorkerEnv>): Outcome {
  if (refusal && /^(IN_PROGRESS|LOCK_HELD|ABORTED)$/.test(refusal.code)) return "busy";
  if (refusal) return refusal.status < 500 ? "refused" : "failed";
  if (error) return problemOf(error).outcome;
  return res.headers.has("idempotent-replayed") || written?.first === false ? "replayed" : "executed";
}

/** Middle step: verifies the delivery and continues only for the first one, or for the first one that succeeds. */
function runOnce(sender: Sender): Step {
  return async function runOnce(c, next) {
    const provider = providerOf(sender, c.env);
    // A missing binding is reported before any request to Redis.
    database(c.env);
    const { cost } = c.var;
    const redlock = redlockOf(c.env, { waitUntil: c.executionCtx, backoff });
    function onEvent(event: HttpEvent): void {
      cost.add(event);
      if (event.type !== "refused") return;
      c.set("refusal", event);
      if (event.status === 500) console.error(event.error);
    }
    // Made for each request, because the cost is this request's. Its own type knows nothing of our bindings, and
    // Hono's contexts are not assignable to each other.
    const middleware: MiddlewareHandler = idempotent({
      redlock,
      provider,
      lease,
      wait: sender.senderTimeout * waitShare,
      // Called with a verified delivery, before any request to Redis: one that cannot be understood never gets there.
      lock(_, { id, body }) {
        const event = sender.event(c.req.raw, body, id);
        c.set("event", event);
        return event.entity;
      },
      onEvent,
    });
    return (await middleware(c, next)) ?? undefined;
  };
}

/** Innermost step: answers a challenge, or writes the effect. The entity's lock is held meanwhile. */
async function applyEffect(c: Context<WorkerEnv>): Promise<Response> {
  const { webhook, event, idempotency: run } = c.var;
  if (!webhook || !event || !run) throw new TypeError("applyEffect must come after runOnce");
  if (event.challenge !== undefined) return c.text(event.challenge);
  const written = await writeEffect(database(c.env), {
    delivery: webhook,
    entity: event.entity,
    event: event.name,
    fence: run.fence,
    at: Date.now(),
  });
  c.set("written", written);
  return c.json(written.effect);
}
