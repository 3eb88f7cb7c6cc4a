import { readFileSync } from "node:fs";
import process from "node:process";
import { expect, test } from "vitest";
import { hunt } from "../processes.mjs";
import { themeOf } from "../world/themes.ts";
import { concerns } from "./mutant.ts";
import { mutants } from "./mutants.ts";
import { applyPatch, pathOf } from "./patch.mjs";

/** By mutant: the seed at which `node evidence/sim-mutants.mjs --write` noticed it. */
const caught: Readonly<Record<string, { readonly seed: number }>> = JSON.parse(
  readFileSync(new URL("caught.json", import.meta.url), "utf8"),
);

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

const isFull = process.env.FULL === "true";

/** Of different parts of the library. A full run tries all. */
const some = [
  "half is a quorum",
  "no expiry timer",
  "one expiry for lease and result",
  "repeated arrivals count again",
];
const tried = mutants.filter(({ name }) => isFull || some.includes(name));

test.each(tried)("noticed: $name", { timeout: 600_000 }, async (mutant) => {
  const recorded = caught[mutant.name]!.seed;
  // If that no longer notices it, others are tried.
  const more = Array.from({ length: isFull ? 300 : 60 }, (_, index) => index + 1);
  const seeds = [recorded, ...more.filter((seed) => concerns(mutant, themeOf(seed)))];
  const { seed } = await hunt(mutant, seeds, 30_000);
  expect(seed, `node evidence/sim-mutants.mjs --only "${mutant.name}"`).toBeGreaterThan(0);
  if (seed !== recorded) console.warn(`${mutant.name}: noticed at seed ${seed}, no longer at ${recorded}`);
});
