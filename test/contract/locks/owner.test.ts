import { describe, expect, test } from "vitest";
import { forceRelease, inspect, type Lock, QuorumError } from "../../../src/index.ts";
import { gated } from "../../support/gated.ts";
import { latch } from "../../support/gateway.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import { bestEngine } from "../../support/redis-servers.ts";
import { until } from "../../support/until.ts";

// Locks with a token of the owner's own: a release ends the holds that the owner had when it was called, and none that
// is acquired later, however late its requests are executed.

const cases = [[bestEngine, "redis-8.4"] as const, ["embedded", "upstash"] as const];
const own = { token: "the-owner", ttl: 30_000 };

describe.each(cases)("an owner's locks, on %s in the %s dialect", (engine, dialect) => {
  const one = gated(engine, 1, dialect);
  const three = gated(engine, 3, dialect);

  /** Delays the releases that arrive at some gateways until it is opened. */
  function delayReleases(indices: readonly number[]) {
    const late = latch();
    for (const index of indices) {
      three.gateways[index]!.before = (command) => (command.includes("release") ? late.opened : undefined);
    }
    const executed = () => indices.map((index) => releasesAt(index).length);
    return { open: late.open, executed };
  }
  const releasesAt = (index: number) =>
    three.gateways[index]!.executed.filter((command) => command.includes("release"));

  /** Fails unless others cannot acquire the lock, and the owner can extend and release it. */
  async function expectHeld(lock: Lock, resource: string): Promise<void> {
    const { redlock } = three.client();
    expect(await redlock.tryAcquire(resource)).toBeNull();
    expect(await lock.verify()).toBe(true);
    expect(await lock.extend()).toBeGreaterThan(0);
    expect(await lock.release()).toBe(true);
    await until(async () => (await three.local.holders(resource)) === 0, "nothing left");
  }

  test.each([
    ["one release request is late", [2]],
    ["two release requests are late", [1, 2]],
    ["all release requests are late", [0, 1, 2]],
  ])("a release does not end what is acquired after it: %s", async (_, indices) => {
    const resource = newResource();
    const { redlock } = three.client({ timeout: paced(300), waitUntil: () => undefined });
    const first = await redlock.acquire(resource, own);
    await until(async () => (await three.local.holders(resource)) === 3, "all endpoints");
    const late = delayReleases(indices);
    const released = await first.release().catch((error) => error);
    if (indices.length > 1) expect(released).toBeInstanceOf(QuorumError);
    else expect(released).toBe(true);
    for (const gateway of three.gateways) gateway.before = () => undefined;
    const second = await redlock.acquire(resource, own);
    late.open();
    await until(() => late.executed().every((count) => count > 0), "the late releases");
    // The second request of a release that found another mark would have arrived by now.
    await Promise.all(three.local.endpoints.map((endpoint) => endpoint.execute(["PING"])));
    await expectHeld(second, resource);
  });

  test("a release does not end what is acquired after it, also where another handle had joined before", async () => {
    const resource = newResource();
    const { redlock } = one.client({ timeout: paced(300) });
    const first = await redlock.acquire(resource, own);
    await redlock.acquire(resource, own);
    const late = latch();
    const gateway = one.gateways[0]!;
    // The request that names the mark of both.
    const namesBoth = (command: readonly string[]) =>
      command.some((word) => /^s[0-9a-f]{24}\d{8}$/.test(word));
    gateway.before = (command) => (namesBoth(command) ? late.opened : undefined);
    expect(await rejection(first.release())).toBeInstanceOf(QuorumError);
    gateway.before = () => undefined;
    const third = await redlock.acquire(resource, own);
    late.open();
    await until(() => gateway.executed.some(namesBoth), "the late release");
    expect(await one.local.holders(resource)).toBe(1);
    expect(await third.verify()).toBe(true);
    expect(await third.release()).toBe(true);
  });

  test("an answer that comes when the release has returned ends nothing", async () => {
    const resource = newResource();
    const { redlock } = three.client({ waitUntil: () => undefined });
    const first = await redlock.acquire(resource, own);
    await until(async () => (await three.local.holders(resource)) === 3, "all endpoints");
    const late = delayReleases([2]);
    expect(await first.release()).toBe(true);
    three.gateways[2]!.before = () => undefined;
    const second = await redlock.acquire(resource, own);
    await until(async () => (await three.local.holders(resource)) === 3, "all endpoints");
    late.open();
    await until(() => late.executed().every((count) => count === 1), "the late release");
    // The client receives another mark from there. Any request it sent for that is executed before these.
    const { redlock: another } = three.client();
    await inspect(another, resource);
    await inspect(another, resource);
    expect(releasesAt(2)).toHaveLength(1);
    expect(await three.local.holders(resource)).toBe(3);
    await expectHeld(second, resource);
  });

  test("a release that is executed a second time does not end what is acquired after it", async () => {
    const resource = newResource();
    const { redlock } = one.client();
    const first = await redlock.acquire(resource, own);
    expect(await first.release()).toBe(true);
    const [release] = one.gateways[0]!.executed.filter((command) => command.includes("release"));
    const second = await redlock.acquire(resource, own);
    await one.local.endpoints[0]!.execute(release!);
    expect(await one.local.holders(resource)).toBe(1);
    expect(await second.verify()).toBe(true);
  });

  test("a release that is executed twice returns true", async () => {
    const resource = newResource();
    const { redlock } = one.client();
    const lock = await redlock.acquire(resource, own);
    const gateway = one.gateways[0]!;
    // An intermediary repeats the request, and returns the second reply.
    gateway.before = (command) =>
      command.includes("release") ? one.local.endpoints[0]!.execute([...command]) : undefined;
    expect(await lock.release()).toBe(true);
    expect(await one.local.holders(resource)).toBe(0);
  });

  test("a release that is executed twice returns false for a lock that was gone before", async () => {
    const resource = newResource();
    const { redlock } = one.client();
    const lock = await redlock.acquire(resource, own);
    await forceRelease(redlock, resource);
    one.gateways[0]!.before = (command) =>
      command.includes("release") ? one.local.endpoints[0]!.execute([...command]) : undefined;
    expect(await lock.release()).toBe(false);
  });

  test("any handle of the owner releases the lock, with one more request where another has joined", async () => {
    const resource = newResource();
    const { redlock, events } = three.client();
    const handles = [await redlock.acquire(resource, own), await redlock.acquire(resource, own)];
    await until(() => three.requests() === 6, "all acquire requests");
    expect(await handles[0]!.release()).toBe(true);
    expect(await three.local.holders(resource)).toBe(0);
    expect(events.at(-1)).toMatchObject({ type: "released", freed: true, requests: 6 });
    expect(await handles[1]!.verify()).toBe(false);
    const again = [];
    for (let count = 0; count < 5; count += 1) again.push(await redlock.acquire(resource, own));
    expect(await again.at(-1)!.release()).toBe(true);
    expect(await three.local.holders(resource)).toBe(0);
  });

  test("several resources are released together, also where another handle has one of them", async () => {
    const [a, b] = [newResource("a"), newResource("b")];
    const { redlock } = three.client();
    await redlock.acquire(b, own);
    const both = await redlock.acquire([a, b], own);
    expect(await both.release()).toBe(true);
    expect(await three.local.holders(a)).toBe(0);
    expect(await three.local.holders(b)).toBe(0);
  });

  test("a failed acquire of the owner does not end the hold of its other handle", async () => {
    const resource = newResource();
    const { redlock } = three.client({ timeout: paced(300) });
    const first = await redlock.acquire(resource, own);
    await until(async () => (await three.local.holders(resource)) === 3, "all endpoints");
    for (const gateway of three.gateways) gateway.after = () => "lost";
    expect(await rejection(redlock.tryAcquire(resource, own))).toBeInstanceOf(QuorumError);
    for (const gateway of three.gateways) gateway.after = () => undefined;
    await expectHeld(first, resource);
  });

  test("a shorter extension by another handle does not shorten the first one's", async () => {
    const resource = newResource();
    const { redlock } = three.client();
    const first = await redlock.acquire(resource, own);
    const second = await redlock.acquire(resource, own);
    expect(await first.extend(60_000)).toBeGreaterThan(50_000);
    expect(await second.extend(20_000)).toBeGreaterThan(15_000);
    const ttls = await Promise.all(
      three.local.endpoints.map((endpoint) => endpoint.execute(["PTTL", `redlock:lock:{${resource}}`])),
    );
    for (const ttl of ttls) expect(ttl).toBeGreaterThan(50_000);
    await expectHeld(second, resource);
  });
});
