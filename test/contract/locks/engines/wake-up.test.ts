import { expect, onTestFinished, test } from "vitest";
import { pubSub } from "../../../../src/wake-up/index.ts";
import { newResource, openLocal } from "../../../support/local-endpoints.ts";
import { rejection } from "../../../support/outcomes.ts";
import { until } from "../../../support/until.ts";

// Streams over real HTTP. What waiters do is shown in virtual time; here connections are real.

const waiting = { wait: Infinity, wakeUp: pubSub };

test("a stream's connection closes when the caller aborts", async () => {
  const local = await openLocal({ count: 1 });
  onTestFinished(() => local.close());
  const endpoint = local.endpoints[0]!;
  /** How many connections subscribe to what was subscribed to last. */
  const subscribers = async () => {
    const commands = endpoint.log.entries.map(({ command }) => command);
    const [name, channel = ""] = commands.filter(([word]) => word === "SUBSCRIBE").at(-1) ?? [];
    const [, count] = (await endpoint.execute(["PUBSUB", "NUMSUB", channel])) as unknown[];
    return name && count;
  };
  const resource = newResource();
  await local.redlock().acquire(resource);
  const controller = new AbortController();
  const calls = [1, 2, 3].map(() =>
    rejection(local.redlock(waiting).acquire(resource, { signal: controller.signal })),
  );
  await until(async () => (await subscribers()) === 3, "the streams");
  controller.abort(new Error("enough"));
  expect(await Promise.all(calls)).toEqual(calls.map(() => new Error("enough")));
  await until(async () => (await subscribers()) === 0, "the end of all subscriptions");
});
