import type { Mutant } from "./mutant.ts";
import { holdingMutants } from "./mutants-holding.ts";
import { roundMutants } from "./mutants-rounds.ts";
import { runMutants } from "./mutants-runs.ts";
import { syncMutants } from "./mutants-sync.ts";

/** Defects that the simulator must notice: one or a few of each kind. */
export const mutants: readonly Mutant[] = [...roundMutants, ...holdingMutants, ...runMutants, ...syncMutants];
