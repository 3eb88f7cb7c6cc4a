import { describe, expect, test } from "vitest";
import { LockHeldError } from "../../../../src/index.ts";
import { watch } from "../../../support/virtual-client.ts";
import { sentBy } from "../../../support/virtual-sync.ts";
import { lockOf, locksIn, newWorld, nowhere, queueOf, queuesIn } from "./world.ts";

// A fair lock in virtual time: who is served when, how long a ticket lives, and what stays behind.

describe("the lock", () => {
  test("is not acquired without waiting while somebody waits, and nobody joins the queue for that", async () => {
    const world = await queueOf(0);
    const own = world.client();
    expect(await lockOf(own).tryAcquire()).toBe(null);
    expect([queuesIn(world), sentBy(own)]).toEqual([nowhere, [1, 1, 1]]);
    const caller = new AbortController();
    const turn = lockOf(world.client(), { backoff: () => 60_000 }).acquire({ signal: caller.signal });
    turn.catch(() => undefined);
    await world.runtime.advance(1);
    await world.held.release();
    expect([locksIn(world), await lockOf(own).tryAcquire()]).toEqual([nowhere, null]);
    caller.abort();
    await world.runtime.advance(0);
    expect(await lockOf(own).tryAcquire()).not.toBe(null);
  });
});

describe("a note", () => {
  test("stands with the lock, and is in no key's name", async () => {
    const { runtime, client, endpoints, at, each } = newWorld();
    // It gets one endpoint at first, and rolls that back.
    at([0, 1], "SET", "fair", "f", "other", "PX", 95);
    const turn = watch(lockOf(client(), { wait: 60_000 }).acquire({ note: "shop {7}" }));
    await runtime.advance(500);
    for (const value of each("GET", "fair", "f")) expect(value).toMatch(/^t[0-9a-f]{32} shop \{7\}$/);
    const tombstones = endpoints.flatMap(({ engine }) => engine.execute(["KEYS", "*:void:*"]) as string[]);
    expect(tombstones).not.toEqual([]);
    for (const key of tombstones) expect(key).toMatch(/^redlock:void:\{f\}:\w+$/);
    expect([await turn.value!.verify(), await turn.value!.release()]).toEqual([true, true]);
    expect(each("EXISTS", "fair", "f")).toEqual(nowhere);
  });
});

describe("waiters", () => {
  test("are served in the order in which they came, each as soon as its pause is over", async () => {
    const { runtime, held, waiters, ...world } = await queueOf(4);
    await held.release();
    for (const [index, { turn }] of waiters.entries()) {
      for (const later of waiters.slice(index)) expect(later.turn.settled).toBe(false);
      // Pauses of 10 ms, and 10 more for each that is ahead.
      for (let ms = 0; ms < 60 && !turn.settled; ms += 1) await runtime.advance(1);
      await turn.value!.release();
    }
    expect([locksIn(world), queuesIn(world)]).toEqual([nowhere, nowhere]);
  });

  test("are skipped when they send no more requests, as soon as their tickets expire", async () => {
    const { runtime, held, waiters } = await queueOf(2);
    const [dead, next] = waiters as [(typeof waiters)[0], (typeof waiters)[0]];
    for (const link of dead.links) link.fate = () => "lost";
    await runtime.advance(1);
    await held.release();
    // 10 ms and two timeouts after its only request, which was 2 ms ago.
    await runtime.advance(207);
    expect(next.turn.settled).toBe(false);
    await runtime.advance(15);
    expect(await next.turn.value!.verify()).toBe(true);
  });
});

describe("a waiter that gives up", () => {
  test("leaves every queue, for good", async () => {
    const world = await queueOf(1, { wait: 25 });
    expect(queuesIn(world)).toEqual([1, 1, 1]);
    await world.runtime.advance(25);
    const [{ turn, links }] = world.waiters as [(typeof world.waiters)[0]];
    expect(turn.error).toBeInstanceOf(LockHeldError);
    expect(turn.error).toMatchObject({ resources: ["f"], waited: 25 });
    expect(queuesIn(world)).toEqual(nowhere);
    expect(Object.values(world.ttls())).toEqual([20_000 - 26, 60_000]);
    // A late request of it.
    await world.held.release();
    await links[0]!.send(links[0]!.sent[0]!, new AbortController().signal);
    expect([locksIn(world), queuesIn(world)]).toEqual([nowhere, nowhere]);
  });
});

describe("a release", () => {
  test("removes the holder's ticket where the lock was not free yet", async () => {
    const world = await queueOf(1);
    const { runtime, held, waiters } = world;
    const [{ turn, links }] = waiters as [(typeof waiters)[0]];
    world.at([0, 1], "DEL", "fair", "f");
    await runtime.advance(10);
    // The third endpoint has the old holder's lock, and the ticket of the new one.
    expect([await turn.value!.verify(), queuesIn(world)]).toEqual([true, [0, 0, 1]]);
    const before = links.map(({ sent }) => sent.length);
    expect(await turn.value!.release()).toBe(true);
    expect(links.map(({ sent }, index) => sent.length - before[index]!)).toEqual([1, 1, 1]);
    // Where the lock was granted, the release names no queue.
    expect(links.map(({ sent }) => sent.at(-1)![2])).toEqual([1, 1, 3]);
    expect([queuesIn(world), locksIn(world)]).toEqual([nowhere, [0, 0, 1]]);
    expect(Object.values(world.ttls(2)).at(-1)).toBe(60_000);
    expect(await held.verify()).toBe(false);
  });
});
