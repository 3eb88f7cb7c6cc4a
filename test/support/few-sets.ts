import process from "node:process";
import type { Dialect } from "../../src/endpoints/endpoint.ts";

/**
 * Whether this is a run with mutants (`vitest.mutation.config.ts`): embedded engines only, and of each contract only the
 * sets that differ in code. The same tests run hundreds of times there.
 */
export const fewSets: boolean = process.env.TEST_SETS === "few";

/** In a run with mutants, the sets that show what others show too are left out. */
export function setsToTest<Set extends { readonly count: number; readonly dialect: Dialect }>(
  sets: readonly Set[],
): readonly Set[] {
  if (!fewSets) return sets;
  const few = sets.filter(({ count, dialect }) => (dialect === "redis" ? count === 3 : count === 1));
  return few.length > 0 ? few : sets.slice(-1);
}
