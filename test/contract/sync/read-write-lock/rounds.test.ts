import { describe, expect, test } from "vitest";
import { LockHeldError } from "../../../../src/index.ts";
import { ReadWriteLock, type SyncOptions } from "../../../../src/sync/index.ts";
import { rejection } from "../../../support/outcomes.ts";
import { delays, type VirtualClient, watch } from "../../../support/virtual-client.ts";
import { newWorld, type SyncWorld } from "../../../support/virtual-sync.ts";

// Readers and writers of the lock `r` in virtual time: who holds it, how long a writer that waits is announced, and what stays
// of one that gives up.

const lockOf = ({ redlock }: VirtualClient, options: SyncOptions = {}) =>
  new ReadWriteLock(redlock, "r", { ttl: 20_000, ...options });

/** By endpoint: how many hold it. */
const holdsIn = ({ each }: Pick<SyncWorld, "each">) => each("ZCARD", "read-write", "r");
/** By endpoint: how many writers are announced. */
const announcedIn = ({ each }: Pick<SyncWorld, "each">) => each("ZCARD", "writers", "r");
const nowhere = [0, 0, 0];
/** A world with a reader, and a writer that has been refused once. */
async function withWaitingWriter(options: SyncOptions = {}, signal?: AbortSignal) {
  const world = newWorld();
  const reading = await lockOf(world.client()).acquireRead();
  const writer = world.client();
  const writing = watch(lockOf(writer, options).acquireWrite({ signal }));
  await world.runtime.advance(0);
  return { ...world, reading, writer, writing };
}

test("the lock is held by readers together, and each of them keeps a writer out", async () => {
  const world = newWorld();
  const [mine, theirs] = [lockOf(world.client()), lockOf(world.client())];
  const readers = [await mine.acquireRead(), await theirs.acquireRead()];
  expect(holdsIn(world)).toEqual([2, 2, 2]);
  for (const hold of readers) {
    expect(await theirs.tryAcquireWrite()).toBe(null);
    expect(await hold.release()).toBe(true);
  }
  await theirs.acquireWrite();
  expect([await theirs.tryAcquireRead(), await mine.tryAcquireWrite()]).toEqual([null, null]);
});

describe("a waiting writer", () => {
  test("keeps new readers out, lets present ones extend, and is served when they are gone", async () => {
    const { runtime, reading, writing, client } = await withWaitingWriter();
    const refused = (await rejection(lockOf(client(), { wait: 0 }).acquireRead())) as LockHeldError;
    // So long lives the announcement if its writer dies.
    expect(refused.retryAfter).toBe(500);
    expect(await reading.extend(30_000)).toBe(30_000 - 302);
    const next = watch(lockOf(client()).acquireRead());
    await runtime.advance(5);
    await reading.release();
    expect([writing.settled, next.settled]).toEqual([false, false]);
    await runtime.advance(5);
    expect([await writing.value!.verify(), next.settled]).toEqual([true, false]);
    await writing.value!.release();
    await runtime.advance(10);
    expect(await next.value!.verify()).toBe(true);
  });

  test("that died keeps readers out until its announcement expires", async () => {
    const { runtime, writer, client } = await withWaitingWriter();
    for (const link of writer.links) link.fate = () => "lost";
    const next = watch(lockOf(client()).acquireRead());
    await runtime.advance(499);
    expect(next.settled).toBe(false);
    await runtime.advance(1);
    expect(next.value!.remaining()).toBe(19_798);
  });
});

test.each<[what: string, options: SyncOptions, aborts: boolean, ends: number]>([
  ["when it is removed, because nothing else keeps that alive", { wait: 5 }, false, 75],
  ["before that where the platform keeps it alive", { wait: 5, waitUntil: () => undefined }, false, 5],
  ["before that after an abort", {}, true, 5],
])("a writer that gives up ends %s; it is removed all the same", async (_, options, aborts, ends) => {
  const caller = new AbortController();
  const { runtime, writer, writing, ...world } = await withWaitingWriter(options, caller.signal);
  const { late } = delays(runtime);
  writer.links[2]!.fate = (command) => (command.includes("release") ? late(70) : "delivered");
  await runtime.advance(5);
  if (aborts) caller.abort(new Error("enough"));
  await runtime.advance(0);
  expect([writing.settled, announcedIn(world)]).toEqual([ends === 5, [0, 0, 1]]);
  await runtime.advance(69);
  expect([writing.settled, announcedIn(world)]).toEqual([ends === 5, [0, 0, 1]]);
  await runtime.advance(1);
  expect(announcedIn(world)).toEqual(nowhere);
  if (aborts) expect(writing.error).toBe(caller.signal.reason);
  else expect(writing.error).toBeInstanceOf(LockHeldError);
});
