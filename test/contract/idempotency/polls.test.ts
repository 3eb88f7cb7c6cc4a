import { expect, test } from "vitest";
import { virtualWorld, watch } from "../../support/virtual-client.ts";
import { runner } from "../../support/virtual-runs.ts";

// What a run that polls makes of the holders that it sees: requests take no time, and random() is 0.5.

test.each([1, 3])("with %i endpoints, a run sees when the holder of its lock changes", async (count) => {
  const world = virtualWorld({ count });
  const hold = (value: string) => world.put("a", [...world.endpoints.keys()], value);
  const client = runner(world, { wait: 60_000, backoff: { min: 10, max: 1_000 } });
  const begins: number[] = [];
  client.links[0]!.fate = (command) => {
    if (command.includes("claim")) begins.push(world.runtime.elapsed);
    return "delivered";
  };
  hold("tfirst");
  const controller = new AbortController();
  const options = { lock: "a", signal: controller.signal };
  const call = watch(client.idempotency.run("key", options, () => expect.unreachable()));
  await client.started();
  await world.runtime.advance(25);
  hold("tsecond");
  await world.runtime.advance(100);
  controller.abort();
  await world.runtime.advance(0);
  expect(call.settled).toBe(true);
  // The same holder: half as long again. Then 0.7 times the time waited, which is all one holder's.
  expect(begins).toEqual([0, 10, 25, 47.5, 80.75]);
});
