import { readFileSync } from "node:fs";
import type { Report } from "./main.ts";
import { concerns, type Mutant } from "./mutant.ts";
import { bundleSimulator, startSimulator } from "./processes.mjs";
import { themeOf } from "./scenario.ts";

/** By mutant: the seed at which `node evidence/sim-mutants.mjs --write` noticed it. */
export const caught: Readonly<Record<string, { readonly seed: number }>> = JSON.parse(
  readFileSync(new URL("caught.json", import.meta.url), "utf8"),
);

/** ms of CPU after which a simulation counts as hanging. */
const timeLimit = 30_000;

/**
 * Puts a mutant into the library, and simulates its recorded seed; if that no longer notices it, the first `others`
 * seeds.
 *
 * @returns the seed that noticed it; undefined: none did
 */
export async function seedThatNotices(mutant: Mutant, others: number): Promise<number | undefined> {
  const { file, remove } = await bundleSimulator({ mutant });
  const simulator = startSimulator(file, timeLimit);
  const isNoticedAt = async (seed: number) => {
    const { violations }: Report = await simulator.simulate({ seed });
    return violations.some(({ invariant }) => mutant.noticedBy.includes(invariant));
  };
  try {
    const recorded = caught[mutant.name]?.seed;
    if (recorded !== undefined && (await isNoticedAt(recorded))) return recorded;
    for (let seed = 1; seed <= others; seed += 1) {
      if (concerns(mutant, themeOf(seed)) && (await isNoticedAt(seed))) return seed;
    }
    return undefined;
  } finally {
    simulator.end();
    await remove();
  }
}
