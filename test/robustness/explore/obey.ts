import { bundleSimulator, startSimulator } from "../../../scripts/simulator.mjs";
import type { Mutant } from "../sim/mutant.ts";
import type { Order, Report } from "./main.ts";

/** Gives the orders to one process, one after another; with a mutant, to one that has its defect. */
export async function obey(orders: readonly Order[], mutant?: Mutant): Promise<Report[]> {
  const entry = "test/robustness/explore/main.ts";
  const { file, remove } = await bundleSimulator(mutant ? { entry, mutant } : { entry });
  const explorer = startSimulator<Report>(file, 300_000);
  const reports: Report[] = [];
  try {
    for (const order of orders) reports.push(await explorer.simulate(order));
  } finally {
    explorer.end();
    await remove();
  }
  return reports;
}

/** Each violation of the reports, with the command that replays it. */
export function violationsIn(reports: readonly Report[]): string[] {
  return reports.flatMap(({ scenario, violations }) =>
    violations.map(
      ({ invariant, detail, schedule }) =>
        `${invariant}: ${detail}\n  npm run explore -- --scenario "${scenario}" --schedule "${schedule}"`,
    ),
  );
}
