import { readFileSync } from "node:fs";
import { expect } from "vitest";
import { simulateAll } from "./processes.mjs";
import type { Simulation } from "./simulate.ts";
import { missing } from "./world/occurrences.ts";
import type { Theme } from "./world/themes.ts";

/** By event: the share of seeds in which it occurs, as `node evidence/sim.mjs --seeds 3000 --write` measured it. */
export const shares: Readonly<Record<string, number>> = JSON.parse(
  readFileSync(new URL("shares.json", import.meta.url), "utf8"),
);

/** Simulates these seeds and all between, in processes of their own. Fails with the command that repeats a violation. */
export async function expectAllHold(first: number, last: number, work?: Theme): Promise<Simulation[]> {
  const count = last - first + 1;
  const orders = Array.from({ length: count }, (_, index) => ({ seed: first + index, work }));
  const all: Simulation[] = [];
  await simulateAll(orders, (simulation: Simulation) => void all.push(simulation));
  const theme = work === undefined ? "" : ` --work ${work}`;
  const violations = all.flatMap(({ seed, violations }) =>
    violations.map(
      ({ invariant, detail }) =>
        `${invariant}: ${detail}\n  node evidence/sim.mjs --seed ${seed}${theme} --trace`,
    ),
  );
  expect(violations).toEqual([]);
  expect(all).toHaveLength(count);
  return all;
}

/** What occurred in any of these simulations. */
export function occurredIn(reports: readonly Simulation[]): ReadonlySet<string> {
  return new Set(reports.flatMap(({ counts }) => Object.keys(counts)));
}

/** What should have occurred in so many simulations, and did not. */
export function missingIn(reports: readonly Simulation[]): string[] {
  return missing(reports.length, occurredIn(reports), shares);
}
