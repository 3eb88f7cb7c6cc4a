import { expect, test } from "vitest";
import { mutants } from "./mutants.ts";
import { caught, seedThatNotices } from "./noticed.ts";

// Puts each known defect into the library, and checks that the simulator notices it: at its recorded seed, or after a
// change of the library that draws differently, at another. `node evidence/sim-mutants.mjs --write` records all seeds anew.

/** How many other seeds are tried where the recorded one no longer notices a mutant. */
const others = 300;

test.each(mutants.map((mutant) => [mutant.name, mutant] as const))(
  "noticed: %s",
  { timeout: 600_000 },
  async (name, mutant) => {
    const seed = await seedThatNotices(mutant, others);
    expect(seed, `node evidence/sim-mutants.mjs --only "${name}"`).toBeGreaterThan(0);
    const recorded = caught[name]?.seed;
    if (seed !== recorded) console.warn(`${name}: noticed at seed ${seed}, no longer at ${recorded}`);
  },
);
