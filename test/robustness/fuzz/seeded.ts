import type { Parameters } from "fast-check";

const given = process.env.FC_SEED;
const seed = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
console.info(`FC_SEED=${seed}`);

/** What fast-check needs: a fresh seed that is printed, and that `FC_SEED=…` gives again; `RUNS=…` times as many runs. */
export function seeded<Values>(numRuns: number, examples: Values[] = []): Parameters<Values> {
  return { seed, numRuns: numRuns * Number(process.env.RUNS ?? 1), examples };
}
