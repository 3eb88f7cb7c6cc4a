/** What is to be written, and under which fence. */
export interface EffectRequest {
  /** The provider's name, what the id is unique within, and the delivery's id. */
  readonly deliveryKey: string;
  readonly delivery: string;
  readonly entity: string;
  readonly event: string;
  /** The fencing token of the lock on the entity. */
  readonly fence: number;
  /** ms since 1970. */
  readonly at: number;
}

/** What acting on a delivery came to: the answer to it, and to every duplicate. */
export interface Effect {
  readonly delivery: string;
  readonly event: string;
  readonly entity: string;
  readonly fence: number;
  /** How many events the entity has had, this one included. */
  readonly events: number;
}

/** A newer holder of the lock has written already. Nothing was written; a new run draws a newer fence. */
export class StaleFenceError extends Error {
  override readonly name = "StaleFenceError";

  constructor({ entity, fence }: EffectRequest) {
    super(`${entity} was written under a fence that is not older than ${fence}`);
  }
}

/**
 * Acts on one delivery: counts it on its entity and notes the effect, both in one transaction and both only if
 * no newer lock holder has written (schema.sql tells why).
 *
 * @throws {StaleFenceError} the fence is not newer than the one stored
 * @throws {Error} of D1. Whether it wrote may then be unknown: across such a failure an effect can take place
 * again, like across a crash.
 *
 * @example
 * await redlock.using(entity, { fencing: true }, (lock) =>
 *   writeEffect(env.DB, { deliveryKey, delivery, entity, event, fence: lock.fence!, at: Date.now() }),
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
  // Without this the run would count as done and the event be lost.
  if (!row) throw new StaleFenceError(request);
  return { delivery, event, entity, fence, events: row.events };
}
