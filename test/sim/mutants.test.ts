import { readFileSync } from "node:fs";
import { afterAll, expect, test } from "vitest";
import { bundleSimulator, startSimulator } from "../../scripts/simulator.mjs";
import type { Report } from "./main.ts";
import type { Mutant } from "./mutant.ts";
import { mutants } from "./mutants.ts";

// Each known defect, put into the library, is noticed: at the seed at which it was when they were last measured, or
// else at another one. `npm run mutants -- --write` measures them anew.

const caught: Record<string, { seed: number }> = JSON.parse(
  readFileSync(new URL("caught.json", import.meta.url), "utf8"),
);
const outdated: string[] = [];

/** At how many seeds one is looked at: within so many all were noticed when they were measured. */
const limit = 2_000;

async function notice(mutant: Mutant): Promise<number | undefined> {
  const { file, remove } = await bundleSimulator({ mutant });
  const simulator = startSimulator(file, 20_000);
  const isNoticed = async (seed: number) => {
    const { violations }: Report = await simulator.simulate({ seed });
    return violations.some(({ invariant }) => mutant.noticedBy.includes(invariant));
  };
  try {
    const recorded = caught[mutant.name]?.seed;
    if (recorded !== undefined && (await isNoticed(recorded))) return recorded;
    outdated.push(mutant.name);
    for (let seed = 1; seed <= limit; seed += 1) if (await isNoticed(seed)) return seed;
    return undefined;
  } finally {
    simulator.end();
    await remove();
  }
}

test.concurrent.each(mutants.map((mutant) => [mutant.name, mutant] as const))(
  "%s",
  {
    timeout: 300_000,
  },
  async (name, mutant) => {
    expect(await notice(mutant), `${name}: not noticed within ${limit} seeds`).toBeTypeOf("number");
  },
);

afterAll(() => {
  if (outdated.length === 0) return;
  console.warn(`noticed at other seeds than recorded (npm run mutants -- --write): ${outdated.join(", ")}`);
});
