import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { worldMutants } from "../explore/mutants.ts";
import { mutants } from "./mutants.ts";
import { caught, seedThatNotices } from "./noticed.ts";

// The list of mutants, and a few of them in the simulator. mutants.long.test.ts simulates all of them.

test("every mutant has a recorded seed", () => {
  expect(Object.keys(caught)).toEqual(mutants.map(({ name }) => name));
});

test("every patch finds its text exactly once", () => {
  const sources = new Map<string, string>();
  const sourceOf = (file: string) => {
    const known = sources.get(file);
    const source = known ?? readFileSync(new URL(`../../../src/${file}`, import.meta.url), "utf8");
    sources.set(file, source);
    return source;
  };
  for (const { name, patches } of [...mutants, ...worldMutants]) {
    for (const { file, find, replace } of patches) {
      expect(sourceOf(file).split(find).length - 1, `${name}: in src/${file}:\n${find}`).toBe(1);
      expect(replace, name).not.toBe(find);
    }
  }
});

/** One of each part of the library. */
const some = [
  "half is a quorum",
  "no expiry timer",
  "extension outlasts the validity",
  "release deletes any value",
  "one expiry for lease and result",
  "repeated arrivals count again",
];

test.each(some)("noticed: %s", { timeout: 120_000 }, async (name) => {
  const mutant = mutants.find((one) => one.name === name);
  expect(await seedThatNotices(mutant!, 60), `npm run sim:mutants -- --only "${name}"`).toBeGreaterThan(0);
});
