/** An effect to write, and the fence to write it under. */
export interface EffectRequest {
  /** The provider's name, what the id is unique within, and the delivery's id, joined with `:`. */
  readonly deliveryKey: string;
  readonly delivery: string;
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

/** A newer holder of the lock has already written. Nothing was written; a new run gets a newer fence. */
export class StaleFenceError extends Error {
  override readonly name = "StaleFenceError";

  constructor({ entity, fence }: EffectRequest) {
    super(`${entity} was written under a fence that is not older than ${fence}`);
  }
}

/**
 * Writes the effect of one delivery: counts it on its entity and records it, both in one transaction and both only if
 * no newer lock holder has written (schema.sql says why).
 *
 * @throws {StaleFenceError} the fence is not newer than the stored one
 * @throws {Error} of D1. Whether D1 has written may be unknown then: as after a crash, the effect can happen again
 *
 * @example
 * await withFence(redlock, entity, { wait: 2_500, run }, (fence) =>
 *   writeEffect(env.DB, { deliveryKey, delivery, entity, event, fence, at: Date.now() }),
 * );
 */
export async function writeEffect(db: D1Database, request: EffectRequest): Promise<Effect> {
  const { deliveryKey, delivery, entity, event, fence, at } = request;
  const [, entities] = await db.batch<{ events: number }>([
    db
      .prepare(`INSERT INTO effects (delivery_key, entity, event, fence, at)
        SELECT ?1, ?2, ?3, ?4, ?5
        WHERE NOT EXISTS (SELECT 1 FROM entities WHERE entity = ?2 AND fence >= ?4)`)
      .bind(deliveryKey, entity, event, fence, at),
    db
      .prepare(`INSERT INTO entities (entity, events, last_event, last_delivery, updated_at, fence)
        VALUES (?1, 1, ?2, ?3, ?4, ?5)
        ON CONFLICT (entity) DO UPDATE SET
          events = entities.events + 1, last_event = excluded.last_event,
          last_delivery = excluded.last_delivery, updated_at = excluded.updated_at, fence = excluded.fence
        WHERE entities.fence < excluded.fence
        RETURNING events`)
      .bind(entity, event, delivery, at, fence),
  ]);
  const row = entities?.results[0];
  // Without this error the run would be completed and the event be lost.
  if (!row) throw new StaleFenceError(request);
  return { delivery, event, entity, fence, events: row.events };
}
