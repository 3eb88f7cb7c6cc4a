import { expect, test } from "vitest";
import { keyOf } from "../../../../src/redis/keys.ts";
import { FairLock } from "../../../../src/sync/index.ts";
import { delays, virtualWorld, watch } from "../../../support/virtual-client.ts";

// Waiters that are granted a part of the endpoints only, in virtual time.

const name = "till";
const lockKey = keyOf("redlock", "fair", name);
const queueKey = keyOf("redlock", "queue", name);

/** Two endpoints with a holder, and a client that asks every 100 ms. */
async function stand() {
  const world = virtualWorld({ count: 2 });
  const [near, far] = world.endpoints;
  await new FairLock(world.client().redlock, name).acquire({ ttl: 60_000 });
  return {
    ...world,
    /** Waits, with answers that take so many ms. */
    wait(ms = 0) {
      const { redlock, links } = world.client({ ttl: 60_000, wait: 60_000, backoff: () => 100 });
      for (const link of links) link.fate = () => (ms > 0 ? delays(world.runtime).slow(ms) : "delivered");
      return watch(new FairLock(redlock, name).acquire());
    },
    /** As if the holder's release had arrived there and not yet elsewhere. */
    free: (endpoint: typeof near) => endpoint!.engine.execute(["DEL", lockKey]),
    tickets: (endpoint: typeof near) =>
      ((endpoint!.engine.execute(["GET", queueKey]) as string | null) ?? "").split(",").filter(Boolean)
        .length,
    near,
    far,
  };
}

test("a waiter that is granted a part keeps its place there, and later ones get nothing", async () => {
  const { runtime, near, far, wait, free, tickets } = await stand();
  const first = wait();
  await runtime.advance(10);
  const second = wait();
  await runtime.advance(50);
  expect([tickets(near), tickets(far)]).toEqual([2, 2]);
  free(near);
  for (let round = 0; round < 5; round += 1) {
    // The first is granted this endpoint, and rolls it back.
    await runtime.advance(50);
    expect([tickets(near), tickets(far)]).toEqual([2, 2]);
    // The second comes after it.
    await runtime.advance(50);
    expect(near!.engine.execute(["GET", lockKey])).toBeNull();
    expect([tickets(near), tickets(far)]).toEqual([2, 2]);
  }
  free(far);
  await runtime.advance(100);
  expect([first.settled, second.settled]).toEqual([true, false]);
});
