import { describe, expect, test } from "vitest";
import type { Fate } from "../../support/link.ts";
import { oneClient, type VirtualWorld, virtualWorld, watch } from "../../support/virtual-client.ts";

// Requests that are lost, late or repeated, in virtual time. The timeout of a request is 100 ms.

/** Kinds of locks, and whether the rollback of their acquire request leaves a tombstone. */
const kinds = [
  ["plain", {}, false],
  ["with a note", { note: "worker 7" }, false],
  ["fenced, with a note", { fencing: true, note: "worker 7" }, true],
] as const;

/** A client whose first request to each of these endpoints has another fate. */
function clientWith(world: VirtualWorld, fate: Fate, indices = [0, 1, 2], options: object = {}) {
  const client = world.client({ ttl: 60_000, ...options });
  for (const index of indices) {
    const link = client.links[index]!;
    link.fate = () => (link.sent.length === 1 ? fate : "delivered");
  }
  return client;
}

describe.each(["redis", "upstash"] as const)("in the %s dialect", (dialect) => {
  describe.each(kinds)("a lock, %s:", (_, options, leavesTombstone) => {
    test.each([true, false])(
      "an acquire that its rollback overtakes leaves nothing, with waitUntil: %s",
      async (waitUntil) => {
        const world = virtualWorld({ dialect });
        world.put("r", [0, 1]);
        const background: Promise<unknown>[] = [];
        const client = clientWith(world, world.late(60), [2], {
          timeout: 120,
          ...(waitUntil && { waitUntil: (work: Promise<unknown>) => background.push(work) }),
        });
        const call = watch(client.redlock.tryAcquire("r", options));
        await world.runtime.advance(59);
        const before = client.links[2]!.sent.length;
        expect(call.value).toBe(null);
        // If the script has not arrived yet, its hash is sent first, and then its text.
        expect(before).toBeGreaterThanOrEqual(2);
        await world.runtime.advance(200);
        // Without a tombstone it is rolled back once more when it is answered.
        expect(client.links[2]!.sent).toHaveLength(before + (leavesTombstone ? 0 : 1));
        expect(world.values("r")[2]).toBe(null);
        const kept = watch(Promise.all(background));
        await world.runtime.advance(0);
        expect([kept.settled, background.length > 0]).toEqual([true, waitUntil]);
      },
    );
  });

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
