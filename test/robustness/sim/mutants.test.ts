import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { bundleSimulator, startSimulator } from "../../../scripts/simulator.mjs";
import type { Report } from "./main.ts";
import { concerns, type Mutant } from "./mutant.ts";
import { mutants } from "./mutants.ts";
import { themeOf } from "./scenario.ts";

// Puts each known defect into the library and checks that the simulator notices it, for those that need few seeds.
// `npm run mutants -- --write` tries all of them, and records the seed at which each is noticed.

const caught: Record<string, { seed: number }> = JSON.parse(
  readFileSync(new URL("caught.json", import.meta.url), "utf8"),
);

/** Mutants with a recorded seed above this are only bundled here, to see that their patches still apply. */
const limit = 60;

/** Puts a mutant in, and simulates its recorded seed; if that does not notice it, a few others. */
async function isNoticed(mutant: Mutant): Promise<boolean> {
  const { file, remove } = await bundleSimulator({ mutant });
  const simulator = startSimulator(file, 20_000);
  const isNoticedAt = async (seed: number) => {
    const { violations }: Report = await simulator.simulate({ seed });
    return violations.some(({ invariant }) => mutant.noticedBy.includes(invariant));
  };
  try {
    const recorded = caught[mutant.name]?.seed ?? Number.POSITIVE_INFINITY;
    if (recorded > limit || (await isNoticedAt(recorded))) return true;
    for (let seed = 1; seed <= 2 * limit; seed += 1) {
      if (concerns(mutant, themeOf(seed)) && (await isNoticedAt(seed))) return true;
    }
    return false;
  } finally {
    simulator.end();
    await remove();
  }
}

test("every mutant has a recorded seed", () => {
  expect(Object.keys(caught)).toEqual(mutants.map(({ name }) => name));
});

test.concurrent.each(mutants.map((mutant) => [mutant.name, mutant] as const))(
  "%s",
  {
    timeout: 120_000,
  },
  async (name, mutant) => {
    expect(await isNoticed(mutant), `${name}: not noticed; npm run mutants -- --only "${name}"`).toBe(true);
  },
);
