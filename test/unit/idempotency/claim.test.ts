import { expect, test } from "vitest";
import { ClaimFence } from "../../../src/idempotency/claim.ts";

test("a lease that ends with the retention of the counters leaves them alone, a longer one writes them", () => {
  const cell = { keys: ["r", "l"], value: "t", record: "P", tombstone: "v", counters: ["c"] };
  const fence = new ClaimFence(cell, 5_000);
  expect(fence.renewal(5_000)).toBeUndefined();
  expect(fence.renewal(5_001)).toMatchObject({ least: 0 });
});
