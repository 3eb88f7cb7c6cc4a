import type { Delivery } from "../src/http/index.ts";
import { deliveryKey, onceInD1 } from "../src/inbox/index.ts";

/** An effect to write, and the fence to write it under. */
export interface EffectRequest {
  readonly delivery: Delivery;
  readonly entity: string;
  readonly event: string;
  /** The fencing token of the lock on the entity. */
  readonly fence: number;
  /** ms since 1970. */
  readonly at: number;
}

/** The written effect of a delivery. It is the response to the delivery and to every duplicate. */
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
  /** False: an earlier run had written it, and ended before its result was stored in Redis. */
  readonly first: boolean;
}

/**
 * Writes the effect of one delivery: counts it on its entity and records it, in one transaction with the delivery's key
 * and the fence. So it happens once, and not at all if a newer lock holder has written (schema.sql says why).
 *
 * @throws {StaleFenceError} a newer holder has written
 * @throws {Error} of D1; the next run finds out whether D1 has written
 *
 * @example
 * const { fence } = c.var.idempotency;
 * const { effect } = await writeEffect(env.DB, { delivery, entity, event, fence, at: Date.now() });
 */
export async function writeEffect(db: D1Database, request: EffectRequest): Promise<WrittenEffect> {
  const { delivery, entity, event, fence, at } = request;
  const { provider, scope, id } = delivery;
  const name = [provider, ...scope, id].join(":");
  const outcome = await onceInD1(db, { key: deliveryKey(delivery), entity, fence }, [
    db
      .prepare("INSERT INTO effects (delivery_key, entity, event, fence, at) VALUES (?1, ?2, ?3, ?4, ?5)")
      .bind(name, entity, event, fence, at),
    db
      .prepare(`INSERT INTO entities (entity, events, last_event, last_delivery, updated_at, fence)
        VALUES (?1, 1, ?2, ?3, ?4, ?5)
        ON CONFLICT (entity) DO UPDATE SET
          events = entities.events + 1, last_event = excluded.last_event,
          last_delivery = excluded.last_delivery, updated_at = excluded.updated_at, fence = excluded.fence
        RETURNING ?6 AS delivery, last_event AS event, entity, fence, events`)
      .bind(entity, event, id, at, fence, id),
  ]);
  if (outcome.first) {
    const [, entities] = outcome.result as readonly D1Result<Effect>[];
    return { effect: entities!.results[0]!, first: true };
  }
  const written = await db
    .prepare(`SELECT ?2 AS delivery, effects.event, entity, effects.fence, entities.events
      FROM effects JOIN entities USING (entity) WHERE delivery_key = ?1`)
    .bind(name, id)
    .first<Effect>();
  // Effects are kept as long as the inbox.
  if (!written) throw new Error("the inbox has a delivery without an effect");
  return { effect: written, first: false };
}
