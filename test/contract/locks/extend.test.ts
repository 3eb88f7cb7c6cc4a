import { describe, expect, test } from "vitest";
import { LockLostError, QuorumError } from "../../../src/index.ts";
import { oneClient, watch } from "../../support/virtual-client.ts";

// Extensions and verifications whose answers are late or missing, in virtual time. The validity of a ttl is the ttl less
// 1 % and 2 ms.

const validityOf = (ttl: number) => ttl - ttl / 100 - 2;

describe("an extension", () => {
  test("counts from before its requests, not from their answers", async () => {
    const { runtime, slow, redlock, links } = oneClient();
    const lock = await redlock.acquire("r", { ttl: 1_000 });
    for (const each of links) each.fate = () => slow(80);
    const extending = lock.extend(2_000);
    await runtime.advance(80);
    expect(await extending).toBe(validityOf(2_000) - 80);
    expect(lock.ttl).toBe(2_000);
  });

  test("is lost where the lock is released while it asks", async () => {
    const { runtime, slow, redlock, links } = oneClient();
    const lock = await redlock.acquire("r", { ttl: 1_000 });
    // Executed at once, and answered after the release.
    for (const each of links) each.fate = () => slow(80);
    const call = watch(lock.extend(2_000));
    await runtime.advance(1);
    for (const each of links) each.fate = () => "delivered";
    expect(await lock.release()).toBe(true);
    await runtime.advance(79);
    expect(call.error).toBeInstanceOf(LockLostError);
    expect(String(call.error)).toContain("released");
    expect(lock.remaining()).toBe(0);
  });

  test("by a shorter ttl shortens the validity at once, and a longer one does not lengthen it before it is granted", async () => {
    const { runtime, redlock, links } = oneClient();
    const lock = await redlock.acquire("r", { ttl: 1_000 });
    for (const each of links) each.fate = () => "lost";
    const longer = watch(lock.extend(9_000));
    await runtime.advance(50);
    expect(lock.remaining()).toBe(validityOf(1_000) - 50);
    await runtime.advance(50);
    expect(longer.error).toBeInstanceOf(QuorumError);
    const shorter = watch(lock.extend(200));
    await runtime.advance(40);
    expect(lock.remaining()).toBe(validityOf(200) - 40);
    await runtime.advance(60);
    expect(shorter.error).toBeInstanceOf(QuorumError);
  });

  test("follows the one before: two are never under way at the same time", async () => {
    const { runtime, slow, redlock, links } = oneClient({}, { count: 1 });
    const lock = await redlock.acquire("r", { ttl: 1_000 });
    links[0]!.fate = () => slow(50);
    const before = links[0]!.sent.length;
    const [first, second] = [watch(lock.extend(3_000)), watch(lock.extend(2_000))];
    await runtime.advance(49);
    expect(links[0]!.sent.length - before).toBe(1);
    await runtime.advance(51);
    expect([first.settled, second.settled]).toEqual([true, true]);
    expect(lock.remaining()).toBe(validityOf(2_000) - 50);
  });
});

test("what an extension restores late, at an endpoint that had lost it, does not outlive the release", async () => {
  const { redlock, links, endpoints, ...world } = oneClient({ timeout: 5_000, waitUntil: () => undefined });
  const lock = await redlock.acquire("r", { ttl: 30_000 });
  endpoints[2]!.engine.execute(["FLUSHALL"]);
  links[2]!.fate = (_, operation) => (operation() === "restore" ? world.late(1_000) : "delivered");
  await lock.extend();
  await world.runtime.advance(10);
  expect(links[2]!.operations()).toContain("restore");
  const released = watch(lock.release());
  await world.runtime.advance(2_000);
  expect([released.value, world.values("r")]).toEqual([true, [null, null, null]]);
});
