import { describe, expect, test } from "vitest";
import { forceRelease, type Lock, QuorumError } from "../../../src/index.ts";
import { keyOf } from "../../../src/redis/keys.ts";
import type { Link } from "../../support/link.ts";
import { rejection } from "../../support/outcomes.ts";
import { delays, type VirtualWorld, virtualWorld, watch } from "../../support/virtual-client.ts";

// Handles that share an owner's lock, and locks that are restored, in virtual time.

const own = { token: "the-owner" };

describe("an owner's lock", () => {
  const releases = (links: readonly Link[]) =>
    links.map(({ sent }) => sent.filter((command) => command.includes("release")).length);

  test("ends for all handles with the release of one, in one request where nobody has joined", async () => {
    const { client, values } = virtualWorld();
    const { redlock, links } = client();
    const lock = await redlock.acquire("r", own);
    expect(lock.token).toBe("the-owner");
    expect(await lock.release()).toBe(true);
    expect(releases(links)).toEqual([1, 1, 1]);
    expect(values("r")).toEqual([null, null, null]);
  });

  test("where another handle has joined, is released by a second request that names the mark found", async () => {
    const { client, values } = virtualWorld();
    const { redlock, links } = client();
    const first = await redlock.acquire("r", own);
    const second = await redlock.acquire("r", own);
    expect(await first.release()).toBe(true);
    expect(releases(links)).toEqual([2, 2, 2]);
    expect(values("r")).toEqual([null, null, null]);
    expect(await second.release()).toBe(false);
  });

  test.each([1, 2])("of %i handles is released by the marks of what is left of it", async (handles) => {
    const { client, values, endpoints } = virtualWorld();
    const { redlock, links } = client();
    const lock = await redlock.acquire(["a", "b", "c"], own);
    if (handles > 1) await redlock.acquire(["a", "b", "c"], own);
    for (const { engine } of endpoints) engine.execute(["DEL", keyOf("redlock", "lock", "b")]);
    expect(await lock.release()).toBe(false);
    expect(releases(links)).toEqual([handles, handles, handles]);
    expect(["a", "c"].map(values)).toEqual([
      [null, null, null],
      [null, null, null],
    ]);
  });

  test("gets a new mark from every handle that joins, however many have", async () => {
    const { client, values, put, endpoints } = virtualWorld();
    const { redlock, links } = client();
    await redlock.acquire("r", own);
    const first = values("r");
    // A second execution is no other handle.
    for (const [index, { engine }] of endpoints.entries()) engine.execute(links[index]!.sent[0]!);
    expect(values("r")).toEqual(first);
    const owner = first[0]!.slice(33);
    for (const [joins, next] of [
      ["10000000", "10000001"],
      ["99999999", "00000000"],
    ] as const) {
      put("r", [0, 1, 2], `s${"a".repeat(24)}${joins}${owner}`);
      await redlock.acquire("r", own);
      expect(values("r")).toEqual(new Array(3).fill(`s${"a".repeat(24)}${next}${owner}`));
    }
  });

  test("costs what the endpoint bills", async () => {
    const { client, endpoints } = virtualWorld({ count: 1 });
    const { redlock, events } = client();
    const lock = await redlock.acquire("r", own);
    await lock.extend();
    await lock.release();
    const costs = events.flatMap((event) => ("commands" in event ? [event.commands] : []));
    expect(costs).toEqual(endpoints[0]!.log.map(({ billed }) => billed));
  });

  test("needs one request where the handle has learnt the mark: from its acquire or its extension", async () => {
    const { client } = virtualWorld();
    const { redlock, links } = client();
    const first = await redlock.acquire("r", own);
    const second = await redlock.acquire("r", own);
    await first.extend();
    expect(await first.release()).toBe(true);
    expect(releases(links)).toEqual([1, 1, 1]);
    const third = await redlock.acquire("r", own);
    const fourth = await redlock.acquire("r", own);
    expect(await fourth.release()).toBe(true);
    expect(releases(links)).toEqual([2, 2, 2]);
    expect([await second.release(), await third.release()]).toEqual([false, false]);
  });

  test("needs one request also where it was lost and restored after that", async () => {
    const { client, endpoints, runtime } = virtualWorld();
    const { redlock, links } = client();
    const first = await redlock.acquire("r", own);
    await redlock.acquire("r", own);
    await first.extend();
    endpoints[2]!.engine.execute(["DEL", "redlock:lock:{r}"]);
    await first.extend();
    await runtime.advance(0);
    expect(await first.release()).toBe(true);
    expect(releases(links)).toEqual([1, 1, 1]);
  });

  test("stays where the owner acquires it again before each of four requests", async () => {
    const { client, values } = virtualWorld({ count: 1 });
    const { redlock, links } = client();
    const other = client().redlock;
    const lock = await redlock.acquire("r", own);
    const before = () => other.acquire("r", own);
    links[0]!.fate = (command) => (command.includes("release") ? { before } : "delivered");
    expect(await lock.release()).toBe(false);
    expect(releases(links)).toEqual([4]);
    expect(values("r")[0]).toMatch(/^s.*the-owner$/);
  });

  test("that stays at one endpoint while the others are down is reported as held there", async () => {
    const { client } = virtualWorld();
    const { redlock, links } = client();
    const other = client().redlock;
    const lock = await redlock.acquire("r", own);
    const before = () => other.acquire("r", own);
    for (const [index, each] of links.entries()) {
      each.fate = (command) => (command.includes("release") && index === 0 ? { before } : "refused");
    }
    const { votes } = (await rejection(lock.release())) as QuorumError;
    expect(votes.map(({ outcome }) => outcome)).toEqual(["held", "error", "error"]);
  });

  test("gets no request after its release has returned, also where another mark is found", async () => {
    const { runtime, client, values } = virtualWorld();
    const { slow } = delays(runtime);
    const { redlock, links } = client({ waitUntil: () => undefined });
    const lock = await redlock.acquire("r", own);
    await client().redlock.acquire("r", own);
    links[2]!.fate = () => slow(50);
    expect(await lock.release()).toBe(true);
    await runtime.advance(100);
    expect(releases(links)).toEqual([2, 2, 1]);
    expect(values("r").map((value) => value !== null)).toEqual([false, false, true]);
  });

  test.each([
    ["one is late", [2]],
    ["two are late", [1, 2]],
    ["all are late", [0, 1, 2]],
  ])("that is acquired again is not ended by earlier release requests: %s", async (_, indices) => {
    const world = virtualWorld();
    const { redlock, links } = world.client({ waitUntil: () => undefined });
    const first = await redlock.acquire("r", own);
    for (const index of indices) {
      links[index]!.fate = (command) =>
        command.includes("release") ? delays(world.runtime).late(1_000) : "delivered";
    }
    const released = watch(first.release());
    await world.runtime.advance(100);
    if (indices.length > 1) expect(released.error).toBeInstanceOf(QuorumError);
    else expect(released.value).toBe(true);
    for (const link of links) link.fate = () => "delivered";
    const second = await redlock.acquire("r", own);
    await world.runtime.advance(2_000);
    expect(await world.client().redlock.tryAcquire("r")).toBe(null);
    expect([await second.verify(), await second.release()]).toEqual([true, true]);
    expect(world.values("r")).toEqual([null, null, null]);
  });

  test("that is acquired again is not ended by a late release, also where another handle had joined before", async () => {
    const world = virtualWorld({ count: 1 });
    const { redlock, links } = world.client();
    const first = await redlock.acquire("r", own);
    await redlock.acquire("r", own);
    // The request that names the mark of both.
    const namesBoth = (command: readonly unknown[]) =>
      command.some((word) => /^s[0-9a-f]{24}\d{8}$/.test(String(word)));
    links[0]!.fate = (command) => (namesBoth(command) ? delays(world.runtime).late(1_000) : "delivered");
    const released = watch(first.release());
    await world.runtime.advance(100);
    expect(released.error).toBeInstanceOf(QuorumError);
    links[0]!.fate = () => "delivered";
    const third = await redlock.acquire("r", own);
    await world.runtime.advance(1_000);
    expect([await third.verify(), await third.release()]).toEqual([true, true]);
  });

  test("that was gone before is not said to be freed by a release that is executed twice", async () => {
    const world = virtualWorld();
    const { redlock, links } = world.client();
    const lock = await redlock.acquire("r", own);
    await forceRelease(redlock, "r");
    for (const link of links) link.fate = () => "twice";
    expect(await lock.release()).toBe(false);
  });

  test("of several resources is released together, also where another handle has one of them", async () => {
    const { client, values } = virtualWorld();
    const { redlock } = client();
    await redlock.acquire("b", own);
    const both = await redlock.acquire(["a", "b"], own);
    expect(await both.release()).toBe(true);
    expect([...values("a"), ...values("b")]).toEqual(new Array(6).fill(null));
  });

  test("is not ended by a failed acquire of another handle", async () => {
    const { runtime, client } = virtualWorld();
    const { redlock, links } = client();
    const first = await redlock.acquire("r", own);
    await redlock.acquire("s");
    expect(await redlock.tryAcquire(["r", "s"], own)).toBe(null);
    const before = links[0]!.sent.length;
    for (const link of links)
      link.fate = () => (link.sent.length === before + 1 ? "reply lost" : "delivered");
    const failed = watch(redlock.tryAcquire("r", own));
    await runtime.advance(200);
    expect(failed.error).toBeInstanceOf(QuorumError);
    expect([await first.verify(), await first.release()]).toEqual([true, true]);
  });

  test("is not shortened by a shorter extension of another handle", async () => {
    const { client, expiries } = virtualWorld();
    const { redlock } = client();
    const first = await redlock.acquire("r", own);
    const second = await redlock.acquire("r", own);
    await first.extend(60_000);
    expect(await second.extend(20_000)).toBe(20_000 - 202);
    expect(expiries("r")).toEqual([60_000, 60_000, 60_000]);
  });

  test("refreshed by a shorter ttl keeps the longer one", async () => {
    const { client, expiries } = virtualWorld();
    const { redlock } = client();
    await redlock.acquire("r", { ...own, ttl: 40_000 });
    await redlock.acquire("r", { ...own, ttl: 1_000 });
    expect(expiries("r")).toEqual([40_000, 40_000, 40_000]);
  });
});

describe("a restored lock", () => {
  const lose = ({ endpoints }: VirtualWorld, index: number) =>
    endpoints[index]!.engine.execute(["DEL", "redlock:lock:{r}"]);

  async function lostAt(index: number, options: object = {}) {
    const world = virtualWorld();
    const { redlock, links } = world.client();
    const lock: Lock = await redlock.acquire("r", { ttl: 10_000, ...options });
    lose(world, index);
    return { ...world, redlock, links, lock };
  }

  test("has the new ttl where it was lost, as elsewhere", async () => {
    const { lock, expiries, values, runtime } = await lostAt(1);
    await lock.extend(30_000);
    await runtime.advance(0);
    expect(expiries("r")).toEqual([30_000, 30_000, 30_000]);
    expect(new Set(values("r"))).toEqual(new Set([lock.token]));
  });

  test("replaces nobody's value", async () => {
    const { lock, put, values, runtime } = await lostAt(1);
    put("r", [1]);
    await lock.extend(30_000);
    await runtime.advance(0);
    expect(values("r")[1]).toBe("somebody-else");
  });

  test("is not restored where the answer arrives after the release or the loss", async () => {
    for (const end of ["release", "loss"]) {
      const { lock, links, values, runtime } = await lostAt(2);
      const { slow } = delays(runtime);
      links[2]!.fate = (command) => (command.includes("extend") ? slow(60) : "delivered");
      await lock.extend(end === "loss" ? 50 : 30_000);
      if (end === "release") await lock.release();
      await runtime.advance(60);
      expect(links[2]!.sent.some((command) => command.includes("restore"))).toBe(false);
      expect(values("r")[2]).toBe(null);
    }
  });

  test("is kept alive by the platform while it is restored", async () => {
    const world = virtualWorld();
    const { slow } = delays(world.runtime);
    const background: Promise<unknown>[] = [];
    const { redlock, links } = world.client({ waitUntil: (work) => background.push(work) });
    const lock = await redlock.acquire("r", { ttl: 10_000 });
    lose(world, 2);
    links[2]!.fate = (command) => (command.includes("restore") ? slow(60) : "delivered");
    await lock.extend();
    const work = watch(Promise.all(background));
    await world.runtime.advance(59);
    expect(work.settled).toBe(false);
    await world.runtime.advance(1);
    expect(work.settled).toBe(true);
  });
});
