import { expect, test } from "vitest";
import { elsewhere } from "./elsewhere.ts";
import { finds, found } from "./find.ts";
import { mutants } from "./mutants.ts";
import { obey, violationsIn } from "./obey.ts";
import { scenarios } from "./scenarios.ts";

// Every schedule of the small worlds with a few deviations, and some defects that these must show. `npm run explore`
// goes further, and `npm run explore -- --mutants` tries all defects.

/** ms. Each takes a few seconds on an idle machine. */
const timeout = 300_000;

test("no schedule within the small bounds violates an invariant", { timeout }, async () => {
  const reports = await obey(scenarios.map(({ name, bounds }) => ({ scenario: name, bound: bounds.test })));
  expect(violationsIn(reports)).toEqual([]);
  expect(reports.filter(({ isWhole }) => !isWhole)).toEqual([]);
  // A search that explores next to nothing must not pass.
  const schedules = reports.reduce((sum, report) => sum + report.schedules, 0);
  expect(schedules).toBeGreaterThan(4_000);
});

test("the same schedule gives the same steps", { timeout }, async () => {
  const [scenario] = scenarios;
  const order = { scenario: scenario!.name, schedule: "2:late:p0.3,12:go:p0.3" };
  const [first, second] = await obey([order, order]);
  expect(first?.violations).toEqual([]);
  expect(first?.lines.length).toBeGreaterThan(20);
  expect(second?.lines).toEqual(first?.lines);
});

test("every mutant is recorded, here or elsewhere", () => {
  const known = [...Object.keys(found), ...elsewhere.flatMap(({ mutants: names }) => names)];
  expect(known.sort()).toEqual(mutants.map(({ name }) => name).sort());
  const names = scenarios.map(({ name }) => name);
  expect(Object.values(found).filter(([scenario]) => !names.includes(scenario))).toEqual([]);
});

test.each([
  "overtaken rollback is not repeated",
  "shorter extensions are forgotten",
  "completes without comparing",
])("finds: %s", { timeout }, async (name) => {
  expect(await finds(name)).toBe(true);
});
