import { describe, expect, test } from "vitest";
import {
  forceRelease,
  handoff,
  type Lock,
  type LockJSON,
  LockLostError,
  resume,
} from "../../../src/index.ts";
import { gated } from "../../support/gated.ts";
import { latch } from "../../support/gateway.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import { bestEngine } from "../../support/redis-servers.ts";
import { until } from "../../support/until.ts";

// A lock continues in another process: no request of the giver may end or shorten the receiver's hold.

const cases = [[bestEngine, "redis"] as const, ["embedded", "upstash"] as const];

describe.each(cases)("a handoff, on %s in the %s dialect", (engine, dialect) => {
  const one = gated(engine, 1, dialect);
  const three = gated(engine, 3, dialect);
  const viaText = (json: LockJSON): LockJSON => JSON.parse(JSON.stringify(json));
  const ttlOf = async (resource: string) =>
    Number(await one.local.endpoints[0]!.execute(["PTTL", `redlock:lock:{${resource}}`]));

  test("ends the giver's handle, and leaves the lock held", async () => {
    const resource = newResource();
    const { redlock } = one.client();
    const lock = await redlock.acquire(resource, { ttl: 30_000 });
    const { signal } = lock;
    const before = one.requests();
    const json = viaText(await handoff(lock));
    expect(one.requests()).toBe(before);
    expect(lock.remaining()).toBe(0);
    expect(signal.aborted).toBe(false);
    expect(await lock.release()).toBe(false);
    expect(await lock.verify()).toBe(false);
    expect(await rejection(lock.extend())).toBeInstanceOf(LockLostError);
    expect(await rejection(handoff(lock))).toBeInstanceOf(LockLostError);
    expect(one.requests()).toBe(before);
    const received = await resume(one.client().redlock, json);
    expect(received.remaining()).toBeGreaterThan(20_000);
    expect(await received.release()).toBe(true);
  });

  test("ends the giver's automatic extension: it cannot shorten the receiver's", async () => {
    const resource = newResource();
    const ttl = paced(800);
    const lock = await one.client().redlock.acquire(resource, { ttl, autoExtend: true });
    const received = await resume(one.client().redlock, viaText(await handoff(lock)));
    expect(await received.extend(60_000)).toBeGreaterThan(50_000);
    const sent = one.requests();
    // Longer than the giver's interval between extensions.
    await new Promise((resolve) => setTimeout(resolve, 0.6 * ttl));
    expect(one.requests()).toBe(sent);
    expect(await ttlOf(resource)).toBeGreaterThan(50_000);
    expect(await received.release()).toBe(true);
  });

  test("is resumed by one of two processes that have the same message", async () => {
    const resource = newResource();
    const json = viaText(await handoff(await three.client().redlock.acquire(resource, { ttl: 30_000 })));
    const resuming = [1, 2, 3, 4].map(() => resume(three.client().redlock, json));
    const outcomes = await Promise.allSettled(resuming);
    const held = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
    const refused = outcomes.flatMap((outcome) => (outcome.status === "rejected" ? [outcome.reason] : []));
    expect(held.length).toBeLessThanOrEqual(1);
    for (const error of refused) expect(error).toBeInstanceOf(LockLostError);
    // Where each got an endpoint, nobody has it any more.
    for (const lock of held) {
      expect(await lock.verify()).toBe(true);
      expect(await lock.release()).toBe(true);
      const late = await rejection(resume(three.client().redlock, json));
      expect(String(late)).toMatch(/resumed before, or released, or has expired/);
      expect(await three.local.holders(resource)).toBe(0);
    }
  });

  test("is taken over by the first extension where nothing may be waited for", async () => {
    const resource = newResource();
    const json = viaText(await handoff(await three.client().redlock.acquire(resource, { ttl: 30_000 })));
    const before = three.requests();
    const [first, second] = await Promise.all(
      [1, 2].map(() => resume(three.client().redlock, json, { immediate: true })),
    );
    expect(three.requests()).toBe(before);
    expect(await first!.extend()).toBeGreaterThan(20_000);
    expect(second!.remaining()).toBeGreaterThan(20_000);
    expect(await second!.verify()).toBe(false);
    expect(second!.remaining()).toBe(0);
    expect(await first!.verify()).toBe(true);
    expect(await first!.release()).toBe(true);
  });

  test("can be resumed again after an outage, whatever has been executed of the first attempt", async () => {
    const resource = newResource();
    const json = viaText(await handoff(await three.client().redlock.acquire(resource, { ttl: 30_000 })));
    const unheard = new Set(three.gateways.slice(0, 2));
    // Not the acquire's, which may be unanswered still.
    for (const gateway of unheard)
      gateway.after = ([command]) => (command !== "SET" && unheard.delete(gateway) ? "lost" : undefined);
    const failed = await rejection(resume(three.client().redlock, json));
    expect((failed as { code: string }).code).toBe("NO_QUORUM");
    const lock = await resume(three.client().redlock, json);
    expect(await lock.verify()).toBe(true);
    expect(await lock.release()).toBe(true);
    await until(async () => (await three.local.holders(resource)) === 0, "the end of all values");
  });

  test("takes over, at its next extension, an endpoint that was down meanwhile", async () => {
    const resource = newResource();
    const down = three.gateways[2]!;
    const json = viaText(await handoff(await three.client().redlock.acquire(resource, { ttl: 30_000 })));
    down.before = () => new Promise(() => undefined);
    const lock = await resume(three.client().redlock, json);
    down.before = () => undefined;
    await lock.extend();
    await until(async () => (await three.local.holders(resource)) === 3, "all three");
    expect(await lock.release()).toBe(true);
    expect(await three.local.holders(resource)).toBe(0);
  });

  test("waits for an extension under way", async () => {
    const resource = newResource();
    const lock = await one.client().redlock.acquire(resource, { ttl: 10_000 });
    const late = latch();
    one.gateways[0]!.after = () => late.opened;
    const extension = lock.extend(40_000);
    let json: LockJSON | undefined;
    const handingOff = handoff(lock).then((given) => {
      json = given;
    });
    await until(() => one.gateways[0]!.executed.length === 2, "the extension");
    expect(json).toBeUndefined();
    late.open();
    await Promise.all([extension, handingOff]);
    expect(json!.ttl).toBe(40_000);
    expect(json!.validUntil - Date.now()).toBeGreaterThan(30_000);
  });

  test("leaves a shorter extension that is unanswered without effect", async () => {
    const resource = newResource();
    const lock = await one.client({ timeout: paced(300) }).redlock.acquire(resource, { ttl: 60_000 });
    const late = latch();
    one.gateways[0]!.before = () => late.opened;
    await rejection(lock.extend(20_000));
    one.gateways[0]!.before = () => undefined;
    const received = await resume(one.client().redlock, viaText(await handoff(lock)));
    expect(await received.extend(60_000)).toBeGreaterThan(50_000);
    late.open();
    const { executed } = one.gateways[0]!;
    await until(() => executed.some((command) => command.includes("20000")), "the late extension");
    expect(await ttlOf(resource)).toBeGreaterThan(30_000);
    expect(await received.release()).toBe(true);
  });

  test("carries an owner's shorter extension that is unanswered: nobody relies on that endpoint", async () => {
    const resource = newResource();
    const options = { ttl: 10_000, token: "the-owner" };
    const lock = await one.client({ timeout: paced(300) }).redlock.acquire(resource, options);
    const late = latch();
    one.gateways[0]!.before = () => late.opened;
    await rejection(lock.extend(2_000));
    one.gateways[0]!.before = () => undefined;
    const json = viaText(await handoff(lock));
    expect(Object.values(json.pendingExtensions)).toEqual([2_000]);
    const received = await resume(one.client().redlock, json);
    // Executed after this extension, the earlier one would shorten it.
    const { code } = (await rejection(received.extend(10_000))) as { code: string };
    expect(code).toBe("NO_QUORUM");
    expect(received.remaining()).toBeLessThan(2_000);
    late.open();
    expect(await received.release()).toBe(true);
  });

  test.each([
    ["fenced", { fencing: true }],
    ["with a token", { token: "the-owner" }],
  ])("carries an unanswered acquire: its release leaves a tombstone, %s", async (_, options) => {
    const resource = newResource();
    const late = latch();
    const slow = three.gateways[2]!;
    slow.before = () => late.opened;
    const { redlock } = three.client({ timeout: paced(500), waitUntil: () => undefined });
    const lock = await redlock.acquire(resource, { ...options, ttl: 30_000 });
    const json = viaText(await handoff(lock));
    expect(json.pendingAcquires).toHaveLength(1);
    slow.before = (command) => (command.includes("acquire") ? late.opened : undefined);
    const received = await resume(three.client().redlock, json);
    expect(await received.release()).toBe(true);
    late.open();
    await until(() => slow.executed.some((command) => command.includes("acquire")), "the late acquire");
    expect(await three.local.holders(resource)).toBe(0);
  });

  test("rejects a lost or released lock, and a client with other endpoints", async () => {
    const { redlock } = three.client();
    const resource = newResource();
    const lock = await redlock.acquire(resource);
    const json = await handoff(lock);
    const elsewhere = await rejection(resume(one.client().redlock, json));
    expect(elsewhere).toBeInstanceOf(RangeError);
    expect(String(elsewhere)).toMatch(/the endpoints that acquired the lock/);
    const released: Lock = await resume(redlock, json);
    await released.release();
    expect(await rejection(handoff(released))).toBeInstanceOf(LockLostError);
    const lost = await redlock.acquire(resource);
    await forceRelease(redlock, resource);
    await rejection(lost.extend());
    expect(await rejection(handoff(lost))).toBeInstanceOf(LockLostError);
  });
});
