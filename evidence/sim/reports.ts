import { readFileSync } from "node:fs";
import type { Report } from "./main.ts";
import { simulateAll } from "./processes.mjs";
import { missing } from "./world/occurrences.ts";
import type { Theme } from "./world/themes.ts";

/** By event: the share of seeds in which it occurs, as `node evidence/sim.mjs --seeds 3000 --write` measured it. */
export const shares: Readonly<Record<string, number>> = JSON.parse(
  readFileSync(new URL("shares.json", import.meta.url), "utf8"),
);

/** Simulates seeds, in processes of their own. */
export async function reportsOf(seeds: Iterable<number>, work?: Theme): Promise<Report[]> {
  const all: Report[] = [];
  await simulateAll(
    [...seeds].map((seed) => ({ seed, work })),
    (report: Report) => void all.push(report),
  );
  return all;
}

/** Each violation, with the command that repeats it. */
export function violationsIn(reports: readonly Report[], work?: Theme): string[] {
  const theme = work === undefined ? "" : ` --work ${work}`;
  return reports.flatMap(({ seed, violations }) =>
    violations.map(
      ({ invariant, detail }) =>
        `${invariant}: ${detail}\n  node evidence/sim.mjs --seed ${seed}${theme} --trace`,
    ),
  );
}

/** What occurred in any of these simulations. */
export function occurredIn(reports: readonly Report[]): ReadonlySet<string> {
  return new Set(reports.flatMap(({ counts }) => Object.keys(counts)));
}

/** What should have occurred in so many simulations, and did not. */
export function missingIn(reports: readonly Report[]): string[] {
  return missing(reports.length, occurredIn(reports), shares);
}
