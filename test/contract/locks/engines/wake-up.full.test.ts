import { expect, test } from "vitest";
import { newResource, openLocal } from "../../../support/local-endpoints.ts";
import { until } from "../../../support/until.ts";
import { Contenders } from "./contenders.ts";

// Many waiters over real HTTP, each with a stream of its own; and streams that are cut as often as a proxy does it.

test.each(["embedded", "redis"] as const)(
  "80 waiters on one endpoint (%s) do not ask in a storm",
  {
    timeout: 300_000,
  },
  async (engine) => {
    const local = await openLocal({ engine, count: 1 });
    const [endpoint] = local.endpoints;
    try {
      const contenders = new Contenders(newResource());
      const count = 80;
      const held = await contenders.client(local.connect()).acquire(contenders.resource);
      const subscriptions = () => local.commands().filter((name) => name === "SUBSCRIBE").length;
      const calls = Array.from({ length: count }, () => contenders.contend(local.connect()));
      await until(() => subscriptions() === count, "the streams");
      const channel = endpoint!.log.entries.find(({ command: [name] }) => name === "SUBSCRIBE")!.command[1]!;
      endpoint!.log.reset();
      await held.release();
      await Promise.all(calls);
      expect(contenders.result).toMatchObject({ served: count, most: 1 });
      const { billed } = endpoint!.log;
      console.info(`${engine}: ${(billed / count).toFixed(1)} commands per grant`);
      // A release is 5, a round 1, and about four ask after each: without the lottery it would be more than 40.
      expect(billed / count).toBeLessThan(20);
      await until(async () => {
        const [, subscribers] = (await endpoint!.execute(["PUBSUB", "NUMSUB", channel])) as [string, number];
        return subscribers === 0;
      }, "the end of all subscriptions");
    } finally {
      await local.close();
    }
  },
);

test("streams that are cut every 2 s: each of ten waiters is served", { timeout: 120_000 }, async () => {
  const local = await openLocal();
  try {
    for (const { faults } of local.endpoints) faults.add({ fault: "cut-stream", ms: 2_000, reset: true });
    const contenders = new Contenders(newResource());
    const cuts = () => local.commands().filter((name) => name === "UNSUBSCRIBE").length;
    // The first five hold until three streams of those that wait were cut.
    const hold = async () => {
      const most = cuts() + 3;
      if (contenders.result.served < 5) await until(() => cuts() >= most, "the cuts");
    };
    await Promise.all(Array.from({ length: 10 }, () => contenders.contend(local.connect(), hold)));
    expect(contenders.result).toMatchObject({ served: 10, most: 1 });
    expect(cuts()).toBeGreaterThan(15);
  } finally {
    await local.close();
  }
});
