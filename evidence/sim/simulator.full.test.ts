import { expect, test } from "vitest";
import { expectAllHold, occurredIn, shares } from "./reports.ts";

// So many that the rarest events occur, which 4 seeds in 1 000 have.
const [first, last] = [161, 1_400];

test(`seeds ${first} to ${last}: every invariant holds and is checked, and every event occurs`, {
  timeout: 1_800_000,
}, async () => {
  const occurred = occurredIn(await expectAllHold(first, last));
  expect(Object.keys(shares).filter((event) => !occurred.has(event))).toEqual([]);
});
