import { describe, expect, test } from "vitest";
import { LockLostError, QuorumError } from "../../../../src/index.ts";
import {
  LimitMismatchError,
  type Permit,
  Semaphore,
  type SemaphoreOptions,
} from "../../../../src/sync/index.ts";
import { slotScript } from "../../../../src/sync/internal/slot.lua.ts";
import { rejection } from "../../../support/outcomes.ts";
import type { VirtualClient } from "../../../support/virtual-client.ts";
import { sentBy, syncWorld } from "../../../support/virtual-sync.ts";

// The rounds of a semaphore in virtual time: which slot is proposed, when, and what the endpoints keep.

const newWorld = (options: Parameters<typeof syncWorld>[1] = {}) => syncWorld([slotScript], options);
const slots = ({ redlock }: VirtualClient, options: Partial<SemaphoreOptions> = {}) =>
  new Semaphore(redlock, "s", { limit: 3, ttl: 20_000, ...options });

describe("a permit", () => {
  test("is one of `limit` slots, each held once; a release frees it on every endpoint", async () => {
    const { client, each, atOnce } = newWorld();
    const [mine, theirs] = [slots(client()), slots(client())];
    const permits: Permit[] = [];
    for (let round = 0; round < 3; round += 1) permits.push((await atOnce(mine.tryAcquire()))!);
    expect(permits.map(({ slot }) => slot).sort()).toEqual([0, 1, 2]);
    expect(await atOnce(theirs.tryAcquire())).toBe(null);
    const [first, ...others] = permits as [Permit, Permit, Permit];
    expect(await first.release()).toBe(true);
    expect(each("EXISTS", `slot:${first.slot}`, "s")).toEqual([0, 0, 0]);
    expect([first.remaining(), first.signal.aborted, await first.release()]).toEqual([0, false, false]);
    expect(await Promise.all(others.map((permit) => permit.verify()))).toEqual([true, true]);
    expect((await atOnce(theirs.tryAcquire()))!.slot).toBe(first.slot);
  });

  test("stands with its note, from acquire to release", async () => {
    const { client, each } = newWorld();
    const permit = await slots(client(), { limit: 1 }).acquire({ note: "nightly \u{1f418}" });
    const [value] = each("GET", "slot:0", "s");
    expect(value).toMatch(/^t[0-9a-f]{32} nightly 🐘$/u);
    await permit.extend(30_000);
    expect(each("GET", "slot:0", "s")).toEqual([value, value, value]);
    expect([await permit.verify(), await permit.release()]).toEqual([true, true]);
    expect(each("EXISTS", "slot:0", "s")).toEqual([0, 0, 0]);
  });

  test("whose limit was replaced is lost at its next extension", async () => {
    const { client, each } = newWorld();
    const permit = await slots(client()).acquire();
    each("SET", "limit", "s", "7", "PX", 1_000);
    expect(await rejection(permit.extend())).toBeInstanceOf(LockLostError);
  });
});

describe("the limit", () => {
  test("is remembered as long as any permit of it", async () => {
    const { runtime, client, each, atOnce } = newWorld();
    const semaphore = slots(client());
    const first = await semaphore.acquire({ ttl: 5_000 });
    expect(each("PTTL", "limit", "s")).toEqual([5_000, 5_000, 5_000]);
    const second = await atOnce(semaphore.acquire({ ttl: 2_000 }));
    expect(each("PTTL", "limit", "s")).toEqual([5_000, 5_000, 5_000]);
    await second.extend(40_000);
    expect(each("PTTL", "limit", "s")).toEqual([40_000, 40_000, 40_000]);
    await runtime.advance(1_000);
    await second.extend(15_000);
    expect(each("PTTL", `slot:${second.slot}`, "s")).toEqual([15_000, 15_000, 15_000]);
    expect(each("PTTL", "limit", "s")).toEqual([39_000, 39_000, 39_000]);
    expect(each("PTTL", `slot:${first.slot}`, "s")).toEqual([4_000, 4_000, 4_000]);
  });

  test("is not touched by a verification", async () => {
    const { runtime, client, each } = newWorld();
    const permit = await slots(client()).acquire();
    await runtime.advance(1_000);
    expect(await permit.verify()).toBe(true);
    expect(each("PTTL", "limit", "s")).toEqual([19_000, 19_000, 19_000]);
    expect(each("PTTL", `slot:${permit.slot}`, "s")).toEqual([19_000, 19_000, 19_000]);
  });

  test("that differs is an error, at once, until the last permit's ttl is over", async () => {
    const { runtime, client, each } = newWorld();
    const permit = await slots(client(), { limit: 2 }).acquire();
    const other = client();
    for (const call of [() => slots(other).acquire(), () => slots(other).tryAcquire()]) {
      const error = await rejection(call());
      expect(error).toBeInstanceOf(LimitMismatchError);
      expect(error).toMatchObject({ name: "LimitMismatchError", resource: "s", limit: 3, inUse: 2 });
      expect((error as Error).message).toMatch(/"s".*2.*3/);
    }
    expect(sentBy(other)).toEqual([2, 2, 2]);
    await permit.release();
    await runtime.advance(19_999);
    expect(await rejection(slots(other).acquire())).toBeInstanceOf(LimitMismatchError);
    expect(each("EXISTS", "slot:2", "s")).toEqual([0, 0, 0]);
    await runtime.advance(1);
    expect(await slots(other).tryAcquire()).not.toBe(null);
  });

  test("that a minority knows blocks that endpoint only", async () => {
    const { client, at, atOnce } = newWorld();
    at([2], "SET", "limit", "s", "7", "PX", 60_000);
    const semaphore = slots(client(), { limit: 2 });
    const permits = [await atOnce(semaphore.tryAcquire()), await atOnce(semaphore.tryAcquire())];
    expect(new Set(permits.map((permit) => permit?.slot))).toEqual(new Set([0, 1]));
    expect(await atOnce(semaphore.tryAcquire())).toBe(null);
    expect(at([2], "EXISTS", "slot:0", "s")).toEqual([0]);
  });

  test("of an endpoint that failed is not known: an outage beside one other limit is an outage", async () => {
    const { client, at } = newWorld();
    at([0], "SET", "limit", "s", "7", "PX", 60_000);
    const own = client();
    own.links[1]!.fate = () => "refused";
    const error = await rejection(slots(own).tryAcquire());
    expect(error).toBeInstanceOf(QuorumError);
    expect((error as QuorumError).votes.map(({ outcome }) => outcome)).toEqual(["held", "error", "granted"]);
  });
});
