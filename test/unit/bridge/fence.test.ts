import { expect, test } from "vitest";
import { Fence } from "../../../src/bridge/fence.ts";

test("a hold that ends with the retention of the counters leaves them alone, a longer one writes them", () => {
  const fence = new Fence(7, 5_000);
  expect(fence.renewal(5_000)).toBeUndefined();
  expect(fence.renewal(5_001)).toMatchObject({ least: 7 });
});
