import { describe, expect, test } from "vitest";
import { inspect } from "../../../src/inspect/index.ts";
import { virtualWorld, watch } from "../../support/virtual-client.ts";

// An extension restores the lock where an endpoint has lost it, so that a long hold survives successive restarts: in
// virtual time.

const free = [null, null, null];
const kinds = [
  ["plain", {}],
  ["fenced", { fencing: true }],
] as const;

describe.each(["redis", "upstash"] as const)("an extension in the %s dialect", (dialect) => {
  function newWorld() {
    const world = virtualWorld({ dialect });
    const restart = (index: number) => world.endpoints[index]!.engine.execute(["FLUSHALL"]);
    return { ...world, restart };
  }

  test.each(kinds)("restores a %s lock on each endpoint that restarts empty in turn", async (_, options) => {
    const { runtime, client, values, restart } = newWorld();
    const { redlock } = client();
    const lock = await redlock.acquire("r", { ...options, ttl: 30_000 });
    for (const index of [0, 1, 2]) {
      restart(index);
      expect(await lock.extend()).toBe(30_000 - 302);
      await runtime.advance(0);
      expect(values("r")).not.toContain(null);
      expect(await client().redlock.tryAcquire("r")).toBeNull();
    }
    if (lock.fence !== undefined) {
      const { votes } = await inspect(redlock, "r");
      for (const { fence } of votes) expect(fence).toBeGreaterThanOrEqual(lock.fence);
    }
    expect(await lock.release()).toBe(true);
    expect(values("r")).toEqual(free);
  });

  test.each(kinds)("whose restore request is late leaves nothing of a %s lock", async (_, options) => {
    const { runtime, client, values, restart, late } = newWorld();
    const { redlock, links } = client({ timeout: 5_000, waitUntil: () => undefined });
    const lock = await redlock.acquire("r", { ...options, ttl: 30_000 });
    restart(2);
    links[2]!.fate = (_, operation) => (operation() === "restore" ? late(1_000) : "delivered");
    await lock.extend();
    await runtime.advance(10);
    expect(links[2]!.operations()).toContain("restore");
    const released = watch(lock.release());
    await runtime.advance(2_000);
    expect([released.value, values("r")]).toEqual([true, free]);
  });
});
