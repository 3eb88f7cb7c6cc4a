import { expect, test } from "vitest";
import { occurredIn, reportsOf, shares, violationsIn } from "./reports.ts";

// So many that the rarest events occur, which 4 seeds in 1 000 have.
const [first, last] = [161, 1_400];

test(`seeds ${first} to ${last}: every invariant holds and is checked, and every event occurs`, {
  timeout: 1_800_000,
}, async () => {
  const count = last - first + 1;
  const all = await reportsOf(Array.from({ length: count }, (_, index) => first + index));
  expect(violationsIn(all)).toEqual([]);
  expect(all).toHaveLength(count);
  const occurred = occurredIn(all);
  expect(Object.keys(shares).filter((event) => !occurred.has(event))).toEqual([]);
});
