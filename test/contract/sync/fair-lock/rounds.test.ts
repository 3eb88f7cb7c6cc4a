import { expect, test } from "vitest";
import { LockHeldError } from "../../../../src/index.ts";
import { FairLock, type SyncOptions } from "../../../../src/sync/index.ts";
import { type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { newWorld, type SyncWorld, sentBy } from "../../../support/virtual-sync.ts";

// A fair lock in virtual time: who is served when, how long a ticket lives, and what stays behind.

const lockOf = ({ redlock }: VirtualClient, options: SyncOptions = {}) =>
  new FairLock(redlock, "f", { ttl: 20_000, ...options });

/** By endpoint: 1 where it is held. */
const locksIn = ({ each }: Pick<SyncWorld, "each">) => each("EXISTS", "fair", "f");
/** By endpoint: how many tickets are queued. */
const queuesIn = ({ each }: Pick<SyncWorld, "each">) =>
  each("GET", "queue", "f").map((text) => (text === null ? 0 : String(text).split(",").length));
const nowhere = [0, 0, 0];

/** A world whose lock is held, and so many waiters that came a ms after each other. */
async function queueOf(count: number, options: SyncOptions = {}) {
  const world = newWorld();
  const held = await lockOf(world.client()).acquire();
  const waiters = [];
  for (let index = 0; index < count; index += 1) {
    await world.runtime.advance(1);
    const own = world.client();
    waiters.push({ ...own, turn: watch(lockOf(own, { wait: 60_000, ...options }).acquire()) });
  }
  await world.runtime.advance(0);
  return { ...world, held, waiters };
}

test("the lock is not acquired without waiting while somebody waits, and nobody joins the queue for that", async () => {
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

test("waiters are skipped when they send no more requests, as soon as their tickets expire", async () => {
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

test("a waiter that gives up leaves every queue, for good", async () => {
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

test("a release removes the holder's ticket where the lock was not free yet", async () => {
  const world = await queueOf(1);
  const [{ turn, links }] = world.waiters as [(typeof world.waiters)[0]];
  world.at([0, 1], "DEL", "fair", "f");
  await world.runtime.advance(10);
  // The third endpoint has the old holder's lock, and the ticket of the new one.
  expect([await turn.value!.verify(), queuesIn(world)]).toEqual([true, [0, 0, 1]]);
  expect(await turn.value!.release()).toBe(true);
  // Where the lock was granted, the release names no queue.
  expect(links.map(({ sent }) => sent.at(-1)![2])).toEqual([1, 1, 3]);
  expect([queuesIn(world), locksIn(world)]).toEqual([nowhere, [0, 0, 1]]);
});
