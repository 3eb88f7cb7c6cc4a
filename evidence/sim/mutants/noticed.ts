import { readFileSync } from "node:fs";
import { hunt } from "../processes.mjs";
import { themeOf } from "../world/themes.ts";
import { concerns, type Mutant } from "./mutant.ts";

/** By mutant: the seed at which `node evidence/sim-mutants.mjs --write` noticed it. */
export const caught: Readonly<Record<string, { readonly seed: number }>> = JSON.parse(
  readFileSync(new URL("caught.json", import.meta.url), "utf8"),
);

/**
 * The seed that notices a mutant: its recorded one, or if that no longer does, one of the first `others`.
 *
 * @returns undefined: none did
 */
export async function seedThatNotices(mutant: Mutant, others: number): Promise<number | undefined> {
  const first = Array.from({ length: others }, (_, index) => index + 1);
  const recorded = caught[mutant.name]?.seed ?? 1;
  const seeds = [recorded, ...first.filter((seed) => concerns(mutant, themeOf(seed)))];
  return (await hunt(mutant, seeds, 30_000)).seed;
}
