import { holdingMutants } from "./holding.ts";
import { mailboxMutants } from "./mailbox.ts";
import type { Mutant } from "./mutant.ts";
import { roundMutants } from "./rounds.ts";
import { runMutants } from "./runs.ts";
import { syncMutants } from "./sync.ts";

/** Defects that the simulator must notice: one or a few of each kind. */
export const mutants: readonly Mutant[] = [
  ...roundMutants,
  ...holdingMutants,
  ...runMutants,
  ...syncMutants,
  ...mailboxMutants,
];
