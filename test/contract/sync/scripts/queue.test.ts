import { describe, expect, test } from "vitest";
import { keyOf } from "../../../../src/redis/keys.ts";
import { queueScript } from "../../../../src/sync/internal/queue.lua.ts";
import { scriptWorld } from "../../../support/virtual-script.ts";

// What depends on a single ms or is told to those that wait. The rest is in the tests of fair locks.

describe("a queue", () => {
  const start = 1_700_000_000_999;

  /** A queue whose clients hear of their turns. */
  async function newQueue() {
    const world = await scriptWorld(queueScript);
    const [lock, queue] = [keyOf("redlock", "fair", "q"), keyOf("redlock", "queue", "q")];
    const run = (tombstones: readonly string[], ...args: (string | number)[]) => {
      const keys = [lock, queue, ...tombstones];
      return world.execute("EVAL", queueScript.source, keys.length, ...keys, ...args);
    };
    return {
      ...world,
      acquire: (ticket: string, ttl = 1_000, expiry = 30_000) =>
        run([`void:v${ticket}`, `void:${ticket}`], "acquire", `v${ticket}`, ticket, ttl, expiry),
      rollBack: (ticket: string) =>
        run([`void:v${ticket}`, `void:${ticket}`], "rollBack", `v${ticket}`, ticket, 60_000, 30_000),
      leave: (ticket: string) => run([`void:${ticket}`], "leave", `v${ticket}`, ticket, 60_000, 0, "channel"),
      release: (ticket: string) => run([], "leave", `v${ticket}`, ticket, 60_000, 0, "channel"),
      holder: () => world.execute("GET", lock),
      queue: () => world.execute("GET", queue),
      heard: world.listen("channel"),
    };
  }

  test("a ticket is live until its expiry, and not at it", async () => {
    const { runtime, acquire, queue } = await newQueue();
    acquire("a");
    acquire("b", 1_000, 200);
    expect(queue()).toBe(`b:${start + 200}`);
    await runtime.advance(199);
    expect(acquire("c", 1_000, 0)).toEqual([0, 1]);
    acquire("d");
    await runtime.advance(1);
    expect(acquire("d")).toEqual([0, 0]);
  });

  test("a ticket that leaves while its value has the lock releases it, and calls the first", async () => {
    const { acquire, leave, holder, heard } = await newQueue();
    acquire("a");
    acquire("c");
    acquire("b");
    expect([leave("c"), heard(), holder()]).toEqual([[0, 0], [], "va"]);
    expect([leave("a"), heard(), holder()]).toEqual([["va", 0], ["b"], null]);
    expect([leave("b"), heard()], "nobody waits").toEqual([[0, 0], []]);
  });

  test("a release calls the first whose ticket lives", async () => {
    const { runtime, acquire, release, holder, heard } = await newQueue();
    acquire("a");
    acquire("b", 1_000, 200);
    acquire("c");
    expect([release("d"), heard(), holder()], "it is held").toEqual([[0, 0], [], "va"]);
    await runtime.advance(200);
    expect([release("a"), heard(), holder()]).toEqual([["va", 0], ["c"], null]);
    expect([release("a"), heard()], "once more").toEqual([[0, 0], ["c"]]);
  });

  test("a second rollback changes nothing", async () => {
    const { acquire, rollBack, queue, execute } = await newQueue();
    acquire("a");
    expect([rollBack("a"), queue()]).toEqual([["va", 0], `a:${start + 30_000}`]);
    execute("DEL", keyOf("redlock", "queue", "q"));
    expect([rollBack("a"), queue()]).toEqual([[0, 0], null]);
  });
});
