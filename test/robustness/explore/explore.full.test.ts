import { expect, test } from "vitest";
import { finds } from "./find.ts";
import { obey, violationsIn } from "./obey.ts";
import { scenarios } from "./scenarios.ts";

test("no schedule within the small bounds violates an invariant", { timeout: 600_000 }, async () => {
  const reports = await obey(scenarios.map(({ name, bounds }) => ({ scenario: name, bound: bounds.test })));
  expect(violationsIn(reports)).toEqual([]);
  expect(reports.filter(({ isWhole }) => !isWhole)).toEqual([]);
  // A search that explores next to nothing must not pass.
  const schedules = reports.reduce((sum, report) => sum + report.schedules, 0);
  expect(schedules).toBeGreaterThan(4_000);
});

/** Of each world, fewest deviations first. `npm run explore` goes on to the end of the bound. */
const most = 250;

test("no schedule within the large bounds violates an invariant", { timeout: 600_000 }, async () => {
  const reports = await obey(
    scenarios.map(({ name, bounds }) => ({ scenario: name, bound: bounds.long, most })),
  );
  const sum = reports.reduce((total, { schedules }) => total + schedules, 0);
  const whole = reports.filter(({ isWhole }) => isWhole).length;
  console.info(`${sum} schedules; ${whole} of ${reports.length} worlds explored to the end of their bound`);
  expect(violationsIn(reports)).toEqual([]);
  expect(sum).toBeGreaterThan(20_000);
});

// Each of another part of the library; explore.test.ts has three others.
test.each([
  "fence without the raising round",
  "release leaves no tombstone",
  "a repeated confirmation prolongs an interval",
  "a frozen call takes itself for the last",
])("finds: %s", { timeout: 300_000 }, async (name) => {
  expect(await finds(name)).toBe(true);
});
