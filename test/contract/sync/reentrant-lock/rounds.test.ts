import { expect, test } from "vitest";
import { ReentrantLock, type ReentrantLockOptions } from "../../../../src/sync/index.ts";
import type { VirtualClient } from "../../../support/virtual-client.ts";
import { newWorld } from "../../../support/virtual-sync.ts";

// Who is an owner of a reentrant lock, in virtual time.

const lockOf = ({ redlock }: VirtualClient, options: ReentrantLockOptions = {}) =>
  new ReentrantLock(redlock, "r", { ttl: 20_000, ...options });

test("the holds of one owner are those of one object, or of one name in several processes", async () => {
  const { client } = newWorld();
  const mine = lockOf(client());
  await mine.acquire();
  const { owner } = mine;
  expect(await lockOf(client()).tryAcquire()).toBe(null);
  expect(await lockOf(client(), { owner: `${owner}1` }).tryAcquire()).toBe(null);
  expect(await lockOf(client(), { owner: owner.slice(1) }).tryAcquire()).toBe(null);
  expect(await lockOf(client(), { owner }).tryAcquire()).not.toBe(null);
});
