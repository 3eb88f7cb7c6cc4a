import process from "node:process";
import type { Dialect } from "../../src/endpoints/endpoint.ts";

/**
 * Whether this is a run with mutants (`vitest.mutation.config.ts`): embedded engines only, and of each contract only the
 * sets that differ in code. The same tests run hundreds of times there.
 */
export const fewSets: boolean = process.env.TEST_SETS === "few";

/**
 * In a run with mutants, the sets that show what others show too are left out: three endpoints of dialect `redis` and one
 * of `upstash` remain, and of sets with the same number of endpoints those of `upstash`.
 */
export function setsToTest<Set extends { readonly count: number; readonly dialect: Dialect }>(
  sets: readonly Set[],
): readonly Set[] {
  if (!fewSets) return sets;
  const areAlike = sets.every(({ count }) => count === sets[0]?.count);
  const few = sets.filter(({ count, dialect }) =>
    dialect === "redis" ? count === 3 && !areAlike : count === 1 || areAlike,
  );
  return few.length > 0 ? few : sets.slice(-1);
}
