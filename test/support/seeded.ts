import process from "node:process";
import type { Parameters } from "fast-check";

/**
 * Parameters for fast-check with a fresh seed, which is printed. `SEED=…` repeats a seed, `RUNS=…` multiplies the runs,
 * as `npm run test:long` does.
 *
 * @param numRuns how many runs
 * @param examples inputs to try first
 */
export function seeded<Values>(
  numRuns: number,
  examples: Values[] = [],
): Parameters<Values> & { readonly seed: number; readonly numRuns: number } {
  const seed = Number(process.env.SEED ?? Math.floor(Math.random() * 2 ** 31));
  console.info(`SEED=${seed}`);
  return { seed, numRuns: Math.ceil(numRuns * Number(process.env.RUNS ?? 1)), examples };
}

/**
 * The seeds of a test of random schedules: so many as it has runs, and more until it has seen all that it is about, at
 * most twenty times as many. It must not fail for what it drew.
 */
export function* seedsUntil(
  { seed, numRuns }: { readonly seed: number; readonly numRuns: number },
  hasSeenAll: () => boolean,
): Generator<number> {
  for (let run = 0; run < numRuns || (!hasSeenAll() && run < 20 * numRuns); run += 1) yield seed + run;
}
