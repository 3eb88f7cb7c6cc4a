import { describe, expect, test } from "vitest";
import type { Settings } from "../../../../src/lock/options.ts";
import { keyOf } from "../../../../src/redis/keys.ts";
import { queueScript } from "../../../../src/sync/internal/queue.lua.ts";
import { QueueRequests } from "../../../../src/sync/internal/queue.ts";
import { channelOf } from "../../../../src/wake-up/channel.ts";
import { pubSub } from "../../../../src/wake-up/index.ts";
import { scriptWorld } from "../../../support/virtual-script.ts";

// What depends on a single ms or is told to those that wait. The rest is in the tests of fair locks.

describe("a queue", () => {
  const start = 1_700_000_000_999;

  /** A queue whose clients hear of their turns, and one whose clients poll. */
  async function newQueue() {
    const world = await scriptWorld(queueScript);
    const settings = { prefix: "redlock", timeout: 1_200, wakeUp: pubSub };
    const at = (ticket: string) => new QueueRequests(settings as unknown as Settings, "q", ticket);
    return {
      ...world,
      acquire: (ticket: string, ttl = 1_000, expiry = 30_000) =>
        at(ticket).acquire(world.call(), `v${ticket}`, { ttl, expiry }),
      remove: (ticket: string) => at(ticket).remove(world.call(), `v${ticket}`),
      release: (ticket: string, retention = 0) =>
        at(ticket).releaseAndTell(world.call(), `v${ticket}`, retention),
      holder: () => world.execute("GET", keyOf("redlock", "fair", "q")),
      queue: () => world.execute("GET", keyOf("redlock", "queue", "q")),
      heard: world.listen(channelOf("redlock", "fair", "q")),
    };
  }

  test("a ticket is live until its expiry, and not at it", async () => {
    const { runtime, acquire, queue } = await newQueue();
    await acquire("a");
    await acquire("b", 1_000, 200);
    expect(queue()).toBe(`b:${start + 200}`);
    await runtime.advance(199);
    expect(await acquire("c", 1_000, 0)).toEqual({ outcome: "held", ahead: 1 });
    await acquire("d");
    await runtime.advance(1);
    expect(await acquire("d")).toEqual({ outcome: "held", ahead: 0 });
  });

  test("a ticket that is removed while its value has the lock releases it, and calls the first", async () => {
    const { acquire, remove, holder, heard } = await newQueue();
    await acquire("a");
    await acquire("c");
    await acquire("b");
    expect([await remove("c"), heard(), holder()]).toEqual([{ outcome: "lost", ahead: 1 }, [], "va"]);
    expect([await remove("a"), heard(), holder()]).toEqual([{ outcome: "granted", ahead: 0 }, ["b"], null]);
    expect([await remove("b"), heard()], "nobody waits").toEqual([{ outcome: "lost", ahead: 0 }, []]);
  });

  test.each([0, 500])("a release with a tombstone for %i ms calls the first", async (retention) => {
    const { acquire, release, execute, holder, heard } = await newQueue();
    await acquire("a");
    await acquire("b");
    expect([await release("c"), heard(), holder()]).toEqual([{ outcome: "lost", ahead: 0 }, [], "va"]);
    const granted = { outcome: "granted", ahead: 0 };
    expect([await release("a", retention), heard(), holder()]).toEqual([granted, ["b"], null]);
    expect(execute("PTTL", `${keyOf("redlock", "void", "q")}:va`)).toBe(retention || -2);
    // A second execution.
    const again = retention ? [granted, []] : [{ outcome: "lost", ahead: 0 }, ["b"]];
    expect([await release("a", retention), heard()]).toEqual(again);
  });

  test("a release that found nothing replies so again", async () => {
    const { release } = await newQueue();
    for (let copy = 0; copy < 2; copy += 1) expect((await release("a", 500)).outcome).toBe("lost");
  });
});
