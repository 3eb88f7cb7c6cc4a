import { describe, expect, test } from "vitest";
import { oneClient, watch } from "../../support/virtual-client.ts";

// Requests that are lost, late or repeated, in virtual time. The timeout of a request is 100 ms.

describe.each(["redis", "upstash"] as const)("in the %s dialect", (dialect) => {
  test.each([{}, { fencing: true, note: "worker 7" }])(
    "an acquire that its rollback overtakes leaves nothing: %o",
    async (options) => {
      const { put, runtime, values, late, redlock, links } = oneClient(
        { ttl: 60_000, timeout: 120 },
        { dialect },
      );
      put("r", [0, 1]);
      const [, , link] = links;
      link!.fate = () => (link!.sent.length === 1 ? late(60) : "delivered");
      const call = watch(redlock.tryAcquire("r", options));
      await runtime.advance(59);
      expect([call.value, link!.sent.length > 1, values("r")[2]]).toEqual([null, true, null]);
      await runtime.advance(200);
      expect(values("r")[2]).toBe(null);
    },
  );

  test("a release that is executed late does not release another holder's lock", async () => {
    const { redlock, links, ...world } = oneClient({}, { count: 1, dialect });
    const lock = await redlock.acquire("r");
    links[0]!.fate = () => world.late(1_000);
    const failed = watch(lock.release());
    await world.runtime.advance(100);
    expect([failed.settled, failed.value, lock.remaining()]).toEqual([true, undefined, 0]);
    links[0]!.fate = () => "delivered";
    expect(await lock.release()).toBe(true);
    const next = await redlock.acquire("r");
    await world.runtime.advance(1_000);
    expect(await next.verify()).toBe(true);
  });
});

test("an extension claims the lock again at an endpoint that has lost it", async () => {
  const { runtime, redlock, endpoints, values } = oneClient();
  const lock = await redlock.acquire("r");
  endpoints[2]!.engine.execute(["FLUSHALL"]);
  await lock.extend();
  await runtime.advance(10);
  expect(values("r")).toEqual([lock.token, lock.token, lock.token]);
});
