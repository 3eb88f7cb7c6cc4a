import { inspect, QuorumError, type Redlock } from "../src/index.ts";
import { BindingError, type Bindings, database, redlockOf, secretHint } from "./bindings.ts";
import { providerOf, sendersOf } from "./senders.ts";

/** What `GET /healthz` answers. It holds names and nothing secret: anybody may ask. */
export interface Health {
  /** `ok` when a quorum of the endpoints and the database answer. */
  readonly status: "ok" | "unavailable";
  /** The senders that are set up. */
  readonly senders: readonly string[];
  readonly endpoints: readonly EndpointHealth[];
  readonly database: { readonly answered: boolean };
}

/** Whether one endpoint answered as Redis does: a wrong token is no answer. A quorum may answer while this one does not. */
export interface EndpointHealth {
  readonly name: string;
  readonly answered: boolean;
}

// Anybody may ask as often as they like, and each look is billed: a script on each endpoint, a query of D1. So an
// isolate looks once in so many ms at most, and answers everybody else with what it saw.
const validFor = 10_000;
// An endpoint that takes longer does not count as one that answers. Senders hang up after 5 s.
const timeout = 2_000;
// A request must not wait for a promise of another one, so it looks at what that one leaves, this often.
const pollEvery = 50;

/** What a look came to; an error is thrown again to everybody who asks meanwhile. */
type Seen = { readonly health: Health } | { readonly error: unknown };

let seen: (Seen & { readonly until: number }) | undefined;
let lookingUntil = 0;

/**
 * Whether the Worker can act on deliveries: it asks every endpoint and the database, at most once in 10 s in each
 * isolate. A missing binding is told at once and asks nothing.
 *
 * @throws {BindingError} a binding is missing or unusable
 * @throws {Error} of D1, when a table is missing
 *
 * @example
 * const { status } = await checkHealth(env);
 */
export async function checkHealth(env: Bindings): Promise<Health> {
  const senders = sendersOf(env).map(([, sender]) => providerOf(sender, env).name);
  if (senders.length === 0) {
    throw new BindingError("no sender has a secret", secretHint("GITHUB_WEBHOOK_SECRET"));
  }
  const redlock = redlockOf(env, { timeout });
  const db = database(env);
  // Another request looks already. It may die without a result: then this one takes over.
  while (!isValid(seen) && Date.now() < lookingUntil) await pause(pollEvery);
  if (!isValid(seen)) {
    lookingUntil = Date.now() + 2 * timeout;
    try {
      const look = await lookAt(redlock, db, senders);
      seen = { ...look, until: Date.now() + validFor };
    } finally {
      lookingUntil = 0;
    }
  }
  if ("error" in seen) throw seen.error;
  return seen.health;
}

function isValid(look: typeof seen): look is NonNullable<typeof seen> {
  return look !== undefined && Date.now() < look.until;
}

async function lookAt(redlock: Redlock, db: D1Database, senders: readonly string[]): Promise<Seen> {
  const [endpoints, databaseAnswer] = await Promise.all([lookAtEndpoints(redlock), lookAtDatabase(db)]);
  // Not an outage: the operator is told what to do (problem.ts).
  if (typeof databaseAnswer !== "boolean") return { error: databaseAnswer };
  const answers = endpoints.filter(({ answered }) => answered).length;
  const healthy = databaseAnswer && answers > endpoints.length / 2;
  const status = healthy ? "ok" : "unavailable";
  return { health: { status, senders, endpoints, database: { answered: databaseAnswer } } };
}

async function lookAtEndpoints(redlock: Redlock): Promise<readonly EndpointHealth[]> {
  const votes = await inspect(redlock, "healthz").then(
    (inspection) => inspection.votes,
    (error: unknown) => {
      if (error instanceof QuorumError) return error.votes;
      throw error;
    },
  );
  return votes.map(({ endpoint, outcome }) => ({ name: endpoint, answered: outcome !== "error" }));
}

/** Whether it answered in time, or the error that says that a table is missing. */
async function lookAtDatabase(db: D1Database): Promise<boolean | Error> {
  const tables = ["effects", "entities", "deliveries", "counters"];
  // At most one row of each: a join of them would read whole tables when one is empty.
  const query = `SELECT ${tables.map((table) => `EXISTS (SELECT 1 FROM ${table})`).join(", ")}`;
  const answer = db
    .prepare(query)
    .run()
    .then(
      () => true,
      (error: Error) => {
        if (error.message.includes("no such table")) return error;
        console.error(error);
        return false;
      },
    );
  return Promise.race([answer, pause(timeout).then(() => false)]);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
