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
    const received = resume(one.client().redlock, json);
    expect(received.remaining()).toBeGreaterThan(20_000);
    expect(await received.release()).toBe(true);
  });

  test("ends the giver's automatic extension: it cannot shorten the receiver's", async () => {
    const resource = newResource();
    const lock = await one.client().redlock.acquire(resource, { ttl: paced(400), autoExtend: true });
    const received = resume(one.client().redlock, viaText(await handoff(lock)));
    expect(await received.extend(60_000)).toBeGreaterThan(50_000);
    const sent = one.requests();
    // Longer than the giver's interval between extensions.
    await new Promise((resolve) => setTimeout(resolve, 500));
    expect(one.requests()).toBe(sent);
    expect(await ttlOf(resource)).toBeGreaterThan(50_000);
    expect(await received.release()).toBe(true);
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

  test("carries a shorter extension that is unanswered: the receiver does not rely on that endpoint", async () => {
    const resource = newResource();
    const lock = await one.client({ timeout: paced(300) }).redlock.acquire(resource, { ttl: 10_000 });
    const late = latch();
    one.gateways[0]!.before = () => late.opened;
    await rejection(lock.extend(2_000));
    one.gateways[0]!.before = () => undefined;
    const json = viaText(await handoff(lock));
    expect(Object.values(json.unanswered)).toEqual([2_000]);
    const received = resume(one.client().redlock, json);
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
    expect(json.unsettled).toHaveLength(1);
    slow.before = (command) => (command.includes("acquire") ? late.opened : undefined);
    const received = resume(three.client().redlock, json);
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
    expect(() => resume(one.client().redlock, json)).toThrow(RangeError);
    expect(() => resume(one.client().redlock, json)).toThrow(/the endpoints that acquired the lock/);
    const released: Lock = resume(redlock, json);
    await released.release();
    expect(await rejection(handoff(released))).toBeInstanceOf(LockLostError);
    const lost = await redlock.acquire(resource);
    await forceRelease(redlock, resource);
    await rejection(lost.extend());
    expect(await rejection(handoff(lost))).toBeInstanceOf(LockLostError);
  });
});
