import { expect, test } from "vitest";
import { elsewhere } from "./elsewhere.ts";
import { finds, found } from "./find.ts";
import { mutants } from "./mutants.ts";
import { obey, violationsIn } from "./obey.ts";
import { scenarios } from "./scenarios.ts";

// Schedules of the small worlds with few deviations, and some defects that these must show. explore.full.test.ts and
// `npm run explore` go further, and `npm run explore -- --mutants` tries all defects.

/** ms. Each takes a few seconds on an idle machine. */
const timeout = 300_000;

/** Of each world, fewest deviations first. */
const most = 60;

test("no schedule with few deviations violates an invariant", { timeout }, async () => {
  const orders = scenarios.map(({ name, bounds }) => ({ scenario: name, bound: bounds.test, most }));
  const reports = await obey(orders);
  expect(violationsIn(reports)).toEqual([]);
  // A search that explores next to nothing must not pass.
  const schedules = reports.reduce((sum, report) => sum + report.schedules, 0);
  console.info(`${schedules} schedules`);
  expect(schedules).toBeGreaterThan(2_500);
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
