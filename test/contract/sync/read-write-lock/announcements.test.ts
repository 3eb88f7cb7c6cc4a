import { expect, test } from "vitest";
import { memoryEndpoint, VirtualTime } from "../../../../local/src/memory/index.ts";
import { type Backoff, Redlock } from "../../../../src/index.ts";
import { keyOf } from "../../../../src/redis/keys.ts";
import { ReadWriteLock } from "../../../../src/sync/index.ts";

test.each<[string, Backoff]>([
  ["default pauses", {}],
  ["long pauses", () => 7_000],
  ["no pauses", () => 0],
])("a writer that lives stays announced between its rounds, with %s", async (_, backoff) => {
  const runtime = new VirtualTime();
  const endpoint = memoryEndpoint({ runtime, faults: [{ fault: "delay", ms: 40 }] });
  const redlock = new Redlock({ endpoints: [endpoint], runtime, backoff });
  const lock = new ReadWriteLock(redlock, "catalogue");
  const key = keyOf("redlock", "writers", "catalogue");
  const announced = () => Number(endpoint.engine.execute(["ZCOUNT", key, runtime.now() + 1, "+inf"]));
  let first = 0;
  let gaps = 0;
  let isOver = false;
  function watch(): void {
    if (isOver) return;
    if (announced() > 0) first ||= runtime.monotonic();
    // At the end it removes its announcement.
    else if (first && runtime.monotonic() < 29_000) gaps += 1;
    runtime.timer(10, watch);
  }
  await runtime.settle(lock.acquireRead({ ttl: 600_000 }));
  watch();
  const refused = runtime.settle(lock.acquireWrite({ wait: 30_000 }));
  await expect(refused).rejects.toMatchObject({ code: "LOCK_HELD" });
  isOver = true;
  expect([first > 0, gaps]).toEqual([true, 0]);
});
