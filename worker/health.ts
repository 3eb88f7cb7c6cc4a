import { inspect, QuorumError, type Redlock } from "../src/index.ts";
import { BindingError, type Bindings, database, redlockOf, secretHint } from "./bindings.ts";
import { providerOf, sendersOf } from "./senders.ts";

/** The answer of `GET /healthz`. It contains names and no secret: anyone may request it. */
export interface Health {
  /** `ok` when a quorum of the endpoints and the database answer. */
  readonly status: "ok" | "unavailable";
  /** The senders that have a secret. */
  readonly senders: readonly string[];
  readonly endpoints: readonly EndpointHealth[];
  readonly database: { readonly answered: boolean };
}

/** Whether one endpoint answered as Redis does; an answer to a wrong token does not count. */
export interface EndpointHealth {
  readonly name: string;
  readonly answered: boolean;
}

// ms. Anyone may request the health at any rate, and each check is billed: a script on each endpoint, a query of D1. So
// an isolate checks at most once in this time, and answers other requests with the last result.
const validFor = 10_000;
// ms. An endpoint that takes longer counts as one that does not answer. Senders give up after 5 s.
const timeout = 2_000;
// ms. A request must not await a promise of another request (on Workers it may never settle), so it polls for the
// other's result.
const pollInterval = 50;

/** The result of a check. An error is thrown to every request as long as the result is valid. */
type CheckResult = { readonly health: Health } | { readonly error: unknown };

/** The last result, and until when (ms since 1970) it is valid. */
let latest: (CheckResult & { readonly until: number }) | undefined;
/** Until when (ms since 1970) another request may still be checking. */
let checkingUntil = 0;

/**
 * Checks whether the Worker can handle deliveries: queries every endpoint and the database, at most once in 10 s in
 * each isolate. A missing binding is reported at once, without a query.
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
  // Another request is checking already. It may end without a result: then this one takes over.
  while (!isValid(latest) && Date.now() < checkingUntil) await pause(pollInterval);
  if (!isValid(latest)) {
    checkingUntil = Date.now() + 2 * timeout;
    try {
      const result = await check(redlock, db, senders);
      latest = { ...result, until: Date.now() + validFor };
    } finally {
      checkingUntil = 0;
    }
  }
  if ("error" in latest) throw latest.error;
  return latest.health;
}

function isValid(result: typeof latest): result is NonNullable<typeof latest> {
  return result !== undefined && Date.now() < result.until;
}

async function check(redlock: Redlock, db: D1Database, senders: readonly string[]): Promise<CheckResult> {
  const [endpoints, databaseAnswer] = await Promise.all([checkEndpoints(redlock), checkDatabase(db)]);
  // A missing table is not an outage: the operator gets a hint (problem.ts).
  if (typeof databaseAnswer !== "boolean") return { error: databaseAnswer };
  const answers = endpoints.filter(({ answered }) => answered).length;
  const healthy = databaseAnswer && answers > endpoints.length / 2;
  const status = healthy ? "ok" : "unavailable";
  return { health: { status, senders, endpoints, database: { answered: databaseAnswer } } };
}

async function checkEndpoints(redlock: Redlock): Promise<readonly EndpointHealth[]> {
  const votes = await inspect(redlock, "healthz").then(
    (inspection) => inspection.votes,
    (error: unknown) => {
      if (error instanceof QuorumError) return error.votes;
      throw error;
    },
  );
  return votes.map(({ endpoint, outcome }) => ({ name: endpoint, answered: outcome !== "error" }));
}

/** Whether the database answered in time, or the error that says that a table is missing. */
async function checkDatabase(db: D1Database): Promise<boolean | Error> {
  const tables = ["effects", "entities", "deliveries", "counters", "redlock_inbox", "redlock_fences"];
  // Reads at most one row of each; a join would read whole tables when one is empty.
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
