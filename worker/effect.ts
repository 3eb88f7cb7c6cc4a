import type { Delivery } from "../src/http/index.ts";
import { deliveryKey, onceInD1 } from "../src/inbox/index.ts";
import type { WebhookEvent } from "./senders.ts";

/** The written effect of a delivery: the answer to it and to every duplicate. */
export interface Effect {
  readonly delivery: string;
  readonly event: string;
  readonly entity: string;
  readonly fence: number;
  /** Number of events of the entity, including this one. */
  readonly events: number;
}

/** An effect, and whether this call has written it. */
export interface WrittenEffect {
  readonly effect: Effect;
  /** False: an earlier run had written it, and ended before Redis had its result. */
  readonly first: boolean;
}

/**
 * Writes the effect of one delivery: counts the event on its entity and records it, in one transaction with the delivery's
 * key and the fence. So it happens once, and not at all if a newer holder of the lock has written.
 *
 * @throws {StaleFenceError} a newer holder has written
 * @throws {Error} of D1; the next run finds out whether D1 has written
 *
 * @example
 * const { effect } = await writeEffect(env.DB, c.var.webhook, event, c.var.idempotency.fence);
 */
export async function writeEffect(
  db: D1Database,
  delivery: Delivery,
  event: WebhookEvent,
  fence: number,
): Promise<WrittenEffect> {
  const { entity, name } = event;
  const key = effectKey(delivery);
  const { first } = await onceInD1(db, { key: deliveryKey(delivery), entity, fence }, [
    db
      .prepare(`INSERT INTO entities (entity, events, fence) VALUES (?1, 1, ?2)
        ON CONFLICT (entity) DO UPDATE SET events = entities.events + 1, fence = excluded.fence`)
      .bind(entity, fence),
    db
      .prepare(`INSERT INTO effects (delivery_key, event, entity, fence, events, at)
        SELECT ?1, ?2, entity, fence, events, ?3 FROM entities WHERE entity = ?4`)
      .bind(key, name, Date.now(), entity),
  ]);
  const effect = await db
    .prepare("SELECT ?1 AS delivery, event, entity, fence, events FROM effects WHERE delivery_key = ?2")
    .bind(delivery.id, key)
    .first<Effect>();
  // Effects are kept as long as the inbox.
  if (!effect) throw new Error("the inbox has a delivery without an effect");
  return { effect, first };
}

/**
 * A delivery's key in the tables of schema.sql.
 *
 * @example
 * effectKey({ provider: "stripe", scope: [], id: "evt_1" }); // "stripe:evt_1"
 */
export function effectKey({ provider, scope, id }: Pick<Delivery, "provider" | "scope" | "id">): string {
  return [provider, ...scope, id].join(":");
}
