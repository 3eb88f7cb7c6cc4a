import { inspect, QuorumError, type Redlock } from "../src/index.ts";
import { BindingError, type Bindings, database, redlockOf, secretHint } from "./bindings.ts";
import { failureOf } from "./failure.ts";
import type { DatabaseHealth, EndpointHealth, Health } from "./health-report.ts";
import { providerOf, sendersOf } from "./senders.ts";

// ms. Anyone may request the health at any rate, and each check is billed: a script on each endpoint, a query of D1. So
// an isolate checks at most once in this time, and answers other requests with the last result.
const validFor = 10_000;
// ms. An endpoint that takes longer counts as one that does not answer. Senders give up after 5 s.
const timeout = 2_000;
const tables = [
  "effects",
  "entities",
  "deliveries",
  "delivery_problems",
  "counters",
  "redlock_inbox",
  "redlock_fences",
];
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
  if (databaseAnswer instanceof Error) return { error: databaseAnswer };
  const answered = endpoints.filter((endpoint) => endpoint.answered).length;
  const needed = Math.floor(endpoints.length / 2) + 1;
  const status = databaseAnswer.answered && answered >= needed ? "ok" : "unavailable";
  return {
    health: { status, senders, quorum: { answered, needed }, endpoints, database: databaseAnswer },
  };
}

async function checkEndpoints(redlock: Redlock): Promise<readonly EndpointHealth[]> {
  const votes = await inspect(redlock, "healthz").then(
    (inspection) => inspection.votes,
    (error: unknown) => {
      if (error instanceof QuorumError) return error.votes;
      throw error;
    },
  );
  return votes.map(({ endpoint, outcome, cause }) => ({
    name: endpoint,
    answered: outcome !== "error",
    ...(cause && { failure: failureOf(cause) }),
  }));
}

/** Whether the database answered in time, or the error that says that a table is missing. */
async function checkDatabase(db: D1Database): Promise<DatabaseHealth | Error> {
  // Reads at most one row of each; a join would read whole tables when one is empty.
  const query = `SELECT ${tables.map((table) => `EXISTS (SELECT 1 FROM ${table})`).join(", ")}`;
  const answer = db
    .prepare(query)
    .run()
    .then(
      (): DatabaseHealth => ({ answered: true }),
      (error: Error) => {
        if (error.message.includes("no such table")) return error;
        console.error(error);
        return { answered: false, failure: { kind: "error" } } as const;
      },
    );
  const late = { answered: false, failure: { kind: "timeout" } } as const;
  return Promise.race([answer, pause(timeout).then(() => late)]);
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
