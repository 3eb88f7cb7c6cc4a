import { expect, test } from "vitest";
import { LockHeldError } from "../../../src/index.ts";
import { oneClient, watch } from "../../support/virtual-client.ts";

// What a waiter that polls asks, in virtual time.

test("a plain lock asks in each round only whether it is free, and its error names who can tell the holder", async () => {
  const { redlock, links, ...world } = oneClient({ wait: 20 }, { count: 1 });
  world.put("a", [0], "t".padEnd(33, "5"));
  const call = watch(redlock.acquire("a"));
  await world.runtime.advance(100);
  const ask = ["SET", "redlock:lock:{a}", expect.any(String), "NX", "PX", 10_000];
  expect(links[0]!.sent).toEqual([ask, ask, ask]);
  expect(call.error).toBeInstanceOf(LockHeldError);
  expect((call.error as LockHeldError).holder).toBe(undefined);
  expect(String(call.error)).toContain("inspect(redlock, name) tells by whom");
});

test("the refusal of a lock with a fence has its holder", async () => {
  const { redlock, ...world } = oneClient({ wait: 0, fencing: true });
  world.put("a", [0, 1, 2], "t".padEnd(33, "5"));
  const call = watch(redlock.acquire("a"));
  await world.runtime.advance(0);
  expect((call.error as LockHeldError).holder).toEqual({ note: undefined, expiresIn: 60_000 });
  expect(String(call.error)).not.toContain("inspect");
});
