import { readFileSync } from "node:fs";
import { mutants } from "./mutants.ts";
import { obey } from "./obey.ts";

/** By mutant: the world and the number of deviations with which `npm run explore -- --mutants` found it. */
export const found: Readonly<Record<string, readonly [scenario: string, bound: number]>> = JSON.parse(
  readFileSync(new URL("found.json", import.meta.url), "utf8"),
);

/** Whether its world shows a mutant, by an invariant that the mutant breaks. */
export async function finds(name: string): Promise<boolean> {
  const mutant = mutants.find((other) => other.name === name)!;
  const [scenario, bound] = found[name]!;
  const wanted = mutant.noticedBy;
  const [report] = await obey([{ scenario, bound, wanted }], mutant);
  return report!.violations.some(({ invariant }) => wanted.includes(invariant));
}
