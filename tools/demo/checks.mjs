/**
 * What a run of the demo observed.
 *
 * @typedef {object} Evidence
 * @property {readonly import("../deliveries.mjs").Delivery[]} deliveries every genuine one
 * @property {ReadonlyMap<string, readonly string[]>} answers bodies of all successes, by delivery key
 * @property {readonly import("./senders.mjs").PhaseCounts[]} counts of every phase
 * @property {number} forgedRequests requests to Redis while nothing but forged deliveries came
 * @property {Readonly<Record<string, number>>} faultHits by kind: how many requests each fault has hit
 */

/**
 * Checks what must hold, by the database and the evidence.
 *
 * @param {any} database the Worker's `D1Database`
 * @param {Evidence} evidence
 * @returns {Promise<Check[]>}
 *
 * @example
 * const ok = printChecks(await checkAll(worker.database, evidence));
 */
export async function checkAll(database, { deliveries, answers, counts, forgedRequests, faultHits }) {
  const effects = await rows(database, "SELECT delivery_key, entity, fence FROM effects ORDER BY rowid");
  const entities = await rows(database, "SELECT entity, events, fence FROM entities");
  const keys = new Set(deliveries.map(({ key }) => key));
  const total = (field) => counts.reduce((sum, phase) => sum + phase[field], 0);
  const unanswered = deliveries.filter(({ key }) => !answers.has(key)).length;
  const different = [...answers.values()].filter((bodies) => new Set(bodies).size > 1).length;
  const faults = Object.entries(faultHits);
  return [
    checkExactlyOnce(keys, effects),
    {
      title: "every sender got its success in the end",
      holds: unanswered + total("givenUp") === 0,
      found: `${unanswered} without, ${total("givenUp")} gave up`,
    },
    {
      title: "duplicates got the answer of the first, byte for byte",
      holds: different === 0 && total("executed") <= keys.size,
      found: `${different} differ`,
    },
    ...checkFences(effects, entities),
    {
      title: "every bad signature was refused, before Redis",
      holds: total("refused") === total("forged") && forgedRequests === 0,
      found: `${total("refused")} of ${total("forged")} refused, ${forgedRequests} requests to Redis`,
    },
    {
      title: "every answer was one that a sender understands",
      holds: total("unexpected") === 0,
      found: `${total("unexpected")} were not`,
    },
    {
      title: "each fault did happen",
      holds: faults.every(([, hits]) => hits > 0),
      found: faults.map(([kind, hits]) => `${kind} ${hits}`).join(", "),
    },
  ];
}

/**
 * The result of one check.
 *
 * @typedef {object} Check
 * @property {string} title
 * @property {boolean} holds
 * @property {string} found the numbers it is based on
 */

/** @returns {Check} */
function checkExactlyOnce(keys, effects) {
  const perDelivery = countBy(effects, (effect) => effect.delivery_key);
  const missing = [...keys].filter((key) => !perDelivery.has(key)).length;
  const double = [...perDelivery.values()].filter((times) => times > 1).length;
  const unknown = [...perDelivery.keys()].filter((key) => !keys.has(key)).length;
  return {
    title: "every genuine event took effect exactly once",
    holds: missing + double + unknown === 0 && effects.length === keys.size,
    found: `${effects.length} of ${keys.size}, ${missing} missing, ${double} double, ${unknown} unknown`,
  };
}

/** @returns {Check[]} */
function checkFences(effects, entities) {
  const newest = new Map();
  let disorder = 0;
  for (const { entity, fence } of effects) {
    if (fence <= (newest.get(entity) ?? 0)) disorder++;
    newest.set(entity, fence);
  }
  const perEntity = countBy(effects, ({ entity }) => entity);
  const astray = entities.filter(
    ({ entity, events, fence }) => events !== perEntity.get(entity) || fence !== newest.get(entity),
  ).length;
  return [
    {
      title: "fences strictly increase on every entity",
      holds: disorder === 0 && effects.length > 0,
      found: `${disorder} of ${effects.length} out of order, ${entities.length} entities`,
    },
    {
      title: "entities count what was written, no update lost",
      holds: astray === 0 && entities.length === perEntity.size,
      found: `${astray} astray`,
    },
  ];
}

async function rows(database, query) {
  return (await database.prepare(query).all()).results;
}

function countBy(list, keyOf) {
  const counts = new Map();
  for (const one of list) counts.set(keyOf(one), (counts.get(keyOf(one)) ?? 0) + 1);
  return counts;
}
