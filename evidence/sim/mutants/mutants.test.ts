import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { mutants } from "./mutants.ts";
import { caught, seedThatNotices } from "./noticed.ts";
import { applyPatch, pathOf } from "./patch.mjs";

// The list of mutants, and a few of them in the simulator. mutants.full.test.ts simulates all of them.

test("every mutant has a recorded seed", () => {
  expect(Object.keys(caught)).toEqual(mutants.map(({ name }) => name));
});

test("every patch finds its text exactly once", () => {
  for (const { name, patches } of mutants) {
    for (const patch of patches) {
      const source = readFileSync(new URL(`../../../${pathOf(patch.file)}`, import.meta.url), "utf8");
      expect(applyPatch(source, patch), name).not.toBe(source);
    }
  }
});

/** Of different parts of the library. */
const some = [
  "half is a quorum",
  "no expiry timer",
  "one expiry for lease and result",
  "repeated arrivals count again",
];

test.each(some)("noticed: %s", { timeout: 120_000 }, async (name) => {
  const mutant = mutants.find((one) => one.name === name);
  expect(
    await seedThatNotices(mutant!, 60),
    `node evidence/sim-mutants.mjs --only "${name}"`,
  ).toBeGreaterThan(0);
});
