import { describe, expect, test } from "vitest";
import { LockLostError, QuorumError } from "../../../src/index.ts";
import { rejection } from "../../support/outcomes.ts";
import { oneClient, takes, watch } from "../../support/virtual-client.ts";

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

  test("that no quorum grants in time leaves the earlier validity", async () => {
    const { runtime, redlock, links } = oneClient();
    const lock = await redlock.acquire("r", { ttl: 1_000 });
    for (const each of links.slice(1)) each.fate = () => "lost";
    const call = watch(lock.extend(5_000));
    await takes(runtime, call, 100);
    expect(call.error).toBeInstanceOf(QuorumError);
    expect(lock.remaining()).toBe(validityOf(1_000) - 100);
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

describe("an unanswered extension", () => {
  /** A lock of 10 s on one endpoint, whose extension to 1 s is executed only after `ms`. */
  async function withLateExtension(ms: number, { deaf = false } = {}) {
    const { redlock, links, ...world } = oneClient({}, { count: 1, deaf });
    const lock = await redlock.acquire("r", { ttl: 10_000 });
    const link = links[0]!;
    link.fate = () => world.late(ms);
    const shorter = rejection(lock.extend(1_000));
    await world.runtime.advance(100);
    expect(await shorter).toBeInstanceOf(QuorumError);
    link.fate = () => "delivered";
    return { ...world, link, lock };
  }

  const outcomeOf = (extending: Promise<number>) =>
    extending.then(
      () => "granted",
      (error: { code: string }) => error.code,
    );

  test("keeps a longer one from relying on that endpoint: nothing is sent there", async () => {
    const { lock, link } = await withLateExtension(500);
    const before = link.sent.length;
    expect(await outcomeOf(lock.extend(1_001))).toBe("NO_QUORUM");
    expect(await outcomeOf(lock.extend(5_000))).toBe("NO_QUORUM");
    expect(link.sent.length).toBe(before);
  });

  test("does not matter for one that is as short", async () => {
    const { lock } = await withLateExtension(60_000);
    expect(await outcomeOf(lock.extend(1_000))).toBe("granted");
    expect(await outcomeOf(lock.extend(500))).toBe("granted");
    expect(await outcomeOf(lock.extend(1_001))).toBe("NO_QUORUM");
  });
});
