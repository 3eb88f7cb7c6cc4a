import type { Parameters } from "fast-check";

const given = process.env.FC_SEED;
const seed = given === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(given);
console.info(`FC_SEED=${seed}`);

/**
 * Parameters for fast-check with a fresh seed, which is printed. `FC_SEED=…` repeats a seed, `RUNS=…` multiplies the
 * runs.
 *
 * @param numRuns how many runs
 * @param examples inputs to try first
 */
export function seeded<Values>(numRuns: number, examples: Values[] = []): Parameters<Values> {
  return { seed, numRuns: numRuns * Number(process.env.RUNS ?? 1), examples };
}
