import type { Assumption, Invariant } from "./assumptions.ts";
import type { Patch } from "./mutant.ts";
import type { Theme } from "./scenario.ts";

/** A place where a check lets something pass that looks like a violation, and is none. */
export interface Exemption {
  /** What passes. */
  readonly name: string;
  /** Why it is no violation. */
  readonly because: string;
  /** Takes the exemption out of the check. */
  readonly without: readonly Patch[];
  /** A simulation of the sound library that the check then accuses of violating `invariant`. */
  readonly seed: number;
  /** Default: what the seed decides. */
  readonly work?: Theme;
  readonly invariant: Invariant;
  /** The assumptions that this simulation drops. Default: what the seed decides. */
  readonly dropped?: readonly Assumption[];
}

/** A text of the simulator, relative to src/ as all patches are. */
export function inCheck(file: string, find: string, replace: string): Patch {
  return { file: `../evidence/sim/${file}`, find, replace };
}
