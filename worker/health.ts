import { endpointsFromEnv, QuorumError, Redlock, type Vote } from "../src/index.ts";
import { inspect } from "../src/inspect/index.ts";
import type { Bindings } from "./bindings.ts";

// ms. Anyone may request the health at any rate, and each check is billed: so an isolate checks once in this time.
const validFor = 10_000;
// ms. What takes longer counts as no answer.
const timeout = 2_000;

/** Whether the Worker can handle deliveries. */
export interface Health {
  /** Whether a quorum of the endpoints and the database answer. */
  readonly ok: boolean;
  /** Each endpoint and the database. */
  readonly parts: readonly HealthPart[];
}

/** What must answer, and why it does not. */
export interface HealthPart {
  readonly name: string;
  readonly problem?: string | undefined;
}

let checkedAt = 0;
let latest: Health | undefined;

/**
 * Asks every endpoint and the database. The result stays valid for 10 s, and while the next check is under way.
 *
 * @example
 * const { ok } = await checkHealth(env);
 */
export async function checkHealth(env: Bindings): Promise<Health> {
  if (latest && Date.now() - checkedAt < validFor) return latest;
  checkedAt = Date.now();
  const [endpoints, database] = await Promise.all([checkEndpoints(env), checkDatabase(env)]);
  const answered = endpoints.filter(({ problem }) => problem === undefined).length;
  const ok = answered > endpoints.length / 2 && database.problem === undefined;
  latest = { ok, parts: [...endpoints, database] };
  return latest;
}

async function checkEndpoints(env: Bindings): Promise<readonly HealthPart[]> {
  try {
    const redlock = new Redlock({ endpoints: endpointsFromEnv(env), timeout });
    const { votes } = await inspect(redlock, "healthz");
    return votes.map(partOf);
  } catch (error) {
    if (error instanceof QuorumError) return error.votes.map(partOf);
    // A variable is missing or unusable; the message names it.
    return [{ name: "endpoints", problem: (error as Error).message }];
  }
}

function partOf({ endpoint, cause }: Pick<Vote, "endpoint" | "cause">): HealthPart {
  return { name: endpoint, problem: cause && (cause.status ? `HTTP ${cause.status}` : cause.kind) };
}

async function checkDatabase({ DB }: Bindings): Promise<HealthPart> {
  const tables = ["effects", "entities", "deliveries", "redlock_inbox", "redlock_fences"];
  const query = `SELECT ${tables.map((table) => `EXISTS (SELECT 1 FROM ${table})`).join(", ")}`;
  try {
    const late = new Promise((_, reject) => setTimeout(reject, timeout, new Error("timeout")));
    await Promise.race([DB.prepare(query).run(), late]);
    return { name: "database" };
  } catch (error) {
    // A table is missing, or D1 does not answer.
    return { name: "database", problem: (error as Error).message };
  }
}
