import { describe, expect, test } from "vitest";
import { LockHeldError } from "../../../../src/index.ts";
import type { SyncOptions } from "../../../../src/sync/index.ts";
import { rejection } from "../../../support/outcomes.ts";
import { delays, watch } from "../../../support/virtual-client.ts";
import { announcedIn, lockOf, nowhere, withWaitingWriter } from "./world.ts";

// Writers that wait in virtual time: how long they are announced, and what stays of one that gives up.

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

  test.each<[string, SyncOptions, number]>([
    ["for half a second at least", { backoff: () => 100, timeout: 50 }, 500],
    ["for one and a half pauses and two timeouts", { backoff: () => 400, timeout: 100 }, 800],
    ["with the pause that follows", { backoff: (attempt) => 400 * attempt, timeout: 100.2 }, 801],
    ["no longer than a timer can run", { backoff: () => 2_000_000_000, timeout: 100 }, 2_147_483_647],
  ])("is announced %s", async (_, options, expiry) => {
    const { each } = await withWaitingWriter(options);
    expect(each("PTTL", "writers", "r")).toEqual([expiry, expiry, expiry]);
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

describe("a writer that gives up", () => {
  test.each<[what: string, options: SyncOptions, aborts: boolean, ends: number]>([
    ["when it is removed, because nothing else keeps that alive", { wait: 5 }, false, 75],
    ["before that where the platform keeps it alive", { wait: 5, waitUntil: () => undefined }, false, 5],
    ["before that after an abort", {}, true, 5],
  ])("ends %s; it is removed all the same", async (_, options, aborts, ends) => {
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
});
