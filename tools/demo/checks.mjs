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
export async function checkAll(database, evidence) {
  const effects = await rows(database, "SELECT delivery_key, entity, fence FROM effects ORDER BY rowid");
  const entities = await rows(database, "SELECT entity, events, fence FROM entities");
  return [
    checkExactlyOnce(evidence.deliveries, effects),
    ...checkAnswers(evidence),
    ...checkFences(effects, entities),
    ...checkRefusals(evidence),
    checkFaults(evidence.faultHits),
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

function checkExactlyOnce(deliveries, effects) {
  const perDelivery = countBy(effects, (effect) => effect.delivery_key);
  const keys = new Set(deliveries.map(({ key }) => key));
  const missing = [...keys].filter((key) => !perDelivery.has(key)).length;
  const double = [...perDelivery.values()].filter((times) => times > 1).length;
  const unknown = [...perDelivery.keys()].filter((key) => !keys.has(key)).length;
  return check(
    "every genuine event took effect exactly once",
    missing + double + unknown === 0 && effects.length === keys.size,
    `${effects.length} of ${keys.size}, ${missing} missing, ${double} double, ${unknown} unknown`,
  );
}

function checkAnswers({ deliveries, answers, counts }) {
  const keys = new Set(deliveries.map(({ key }) => key));
  const unanswered = deliveries.filter(({ key }) => !answers.has(key)).length;
  const givenUp = sum(counts, "givenUp");
  const different = [...answers.values()].filter((bodies) => new Set(bodies).size > 1).length;
  return [
    check(
      "every sender got its success in the end",
      unanswered + givenUp === 0,
      `${unanswered} without, ${givenUp} gave up`,
    ),
    check(
      "duplicates got the answer of the first, byte for byte",
      different === 0 && sum(counts, "executed") <= keys.size,
      `${different} differ`,
    ),
  ];
}

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
    check(
      "fences strictly increase on every entity",
      disorder === 0 && effects.length > 0,
      `${disorder} of ${effects.length} out of order, ${entities.length} entities`,
    ),
    check(
      "entities count what was written, no update lost",
      astray === 0 && entities.length === perEntity.size,
      `${astray} astray`,
    ),
  ];
}

function checkRefusals({ counts, forgedRequests }) {
  const refused = sum(counts, "refused");
  const forgedSent = sum(counts, "forged");
  const unexpected = sum(counts, "unexpected");
  return [
    check(
      "every bad signature was refused, before Redis",
      refused === forgedSent && forgedRequests === 0,
      `${refused} of ${forgedSent} refused, ${forgedRequests} requests to Redis`,
    ),
    check("every answer was one that a sender understands", unexpected === 0, `${unexpected} were not`),
  ];
}

function checkFaults(faultHits) {
  const faults = Object.entries(faultHits);
  return check(
    "each fault did happen",
    faults.every(([, hits]) => hits > 0),
    faults.map(([kind, hits]) => `${kind} ${hits}`).join(", "),
  );
}

function check(title, holds, found) {
  return { title, holds, found };
}

async function rows(database, query) {
  return (await database.prepare(query).all()).results;
}

function countBy(list, keyOf) {
  const counts = new Map();
  for (const one of list) counts.set(keyOf(one), (counts.get(keyOf(one)) ?? 0) + 1);
  return counts;
}

function sum(counts, field) {
  return counts.reduce((total, phase) => total + phase[field], 0);
}
