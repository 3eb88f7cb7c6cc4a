import { describe, expect, test } from "vitest";
import { type Lock, QuorumError, type RedlockError } from "../../../src/index.ts";
import { gated } from "../../support/gated.ts";
import { latch } from "../../support/gateway.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import { bestEngine } from "../../support/redis-servers.ts";
import { until } from "../../support/until.ts";

const cases = [[bestEngine, "redis"] as const, ["embedded", "redis-8.4"] as const];

describe.each(cases)("failing and late extensions, on %s in the %s dialect", (engine, dialect) => {
  const at = gated(engine, 3, dialect);
  const extendCommand = dialect === "redis" ? "EVALSHA" : "SET";

  /** Fails unless the lock lives on a quorum for longer than the holder relies on it. */
  async function expectBacked(lock: Lock, resource: string): Promise<void> {
    const remaining = lock.remaining();
    const expiries = await at.local.expiries(resource);
    expect(
      expiries.filter((ms) => ms > remaining).length,
      `${remaining} ms, of ${expiries}`,
    ).toBeGreaterThanOrEqual(2);
  }

  test("a shorter extension without an answer leaves no more validity than it requested", async () => {
    const resource = newResource();
    const { redlock } = at.client({ ttl: 60_000 });
    const lock = await redlock.acquire(resource);
    await until(async () => (await at.local.holders(resource)) === 3, "all three endpoints");
    for (const gateway of at.gateways) gateway.after = () => "lost";
    expect(await rejection(lock.extend(1_000))).toBeInstanceOf(QuorumError);
    expect(lock.remaining()).toBeLessThan(1_000);
    await expectBacked(lock, resource);
  });

  test("a shorter extension counts from when it was sent while it is unanswered", async () => {
    const resource = newResource();
    const { redlock } = at.client({ ttl: 60_000, driftFactor: 0.5, timeout: 60_000 });
    const lock = await redlock.acquire(resource);
    await until(async () => (await at.local.holders(resource)) === 3, "all three endpoints");
    const answers = latch();
    for (const gateway of at.gateways) gateway.after = () => answers.opened;
    const extension = rejection(lock.extend(1_600));
    await until(() => at.gateways.every(({ executed }) => executed.length === 2), "its execution");
    await expectBacked(lock, resource);
    await until(() => lock.signal.aborted, "the loss");
    expect(await at.local.holders(resource)).toBeGreaterThan(0);
    // Its requests have hung for as long as the validity lasted, and no longer. A timer may fire a part of a ms early.
    expect(["LOCK_LOST", "NO_QUORUM"]).toContain(((await extension) as RedlockError).code);
    answers.open();
  });

  test("a shorter extension that is executed late does not shorten a longer one", async () => {
    const resource = newResource();
    const { redlock } = at.client({ ttl: 60_000, timeout: paced(300) });
    const lock = await redlock.acquire(resource);
    await until(async () => (await at.local.holders(resource)) === 3, "all three endpoints");
    const late = latch();
    let shorter = 0;
    for (const gateway of at.gateways.slice(1)) {
      gateway.before = (command) => {
        if (command[0] !== extendCommand || shorter === 2) return;
        shorter += 1;
        return late.opened;
      };
    }
    expect(await rejection(lock.extend(2_000))).toBeInstanceOf(QuorumError);
    const longer = lock.extend(60_000).catch((error: unknown) => error);
    expect(await longer).toBeInstanceOf(QuorumError);
    late.open();
    await until(
      async () => (await at.local.expiries(resource)).slice(1).every((ms) => ms <= 2_000),
      "the late executions",
    );
    await expectBacked(lock, resource);
  });

  test("an endpoint that has not answered a shorter extension does not block the others", async () => {
    const resource = newResource();
    const { redlock } = at.client({ ttl: 60_000, timeout: 1_000 });
    const lock = await redlock.acquire(resource);
    await until(async () => (await at.local.holders(resource)) === 3, "all three endpoints");
    const late = latch();
    at.gateways[2]!.before = () => late.opened;
    expect(await lock.extend(5_000)).toBeLessThan(5_000);
    expect(await lock.extend(60_000)).toBeGreaterThan(50_000);
    late.open();
    await until(async () => (await at.local.expiries(resource))[2]! <= 5_000, "the late execution");
    await expectBacked(lock, resource);
    // Once it has answered, it counts again.
    await until(() => at.gateways[2]!.executed.length === 2, "its answer");
    await until(async () => {
      await lock.extend(60_000);
      return (await at.local.expiries(resource))[2]! > 50_000;
    }, "its vote");
  });

  test("the second of two concurrent extensions is sent when the first is answered", async () => {
    const resource = newResource();
    const { redlock } = at.client({ ttl: 60_000 });
    const lock = await redlock.acquire(resource);
    await until(() => at.requests() === 3, "the acquire");
    const answers = latch();
    for (const gateway of at.gateways) gateway.after = () => answers.opened;
    const [first, second] = [lock.extend(5_000), lock.extend(50_000)];
    await until(() => at.requests() === 6, "the first extension");
    // After a request to another server, the first extension is still the only one.
    expect(await at.local.holders(resource)).toBe(3);
    await fetch(at.local.endpoints[0]!.url);
    expect(at.requests()).toBe(6);
    answers.open();
    expect(await first).toBeLessThan(5_000);
    expect(await second).toBeGreaterThan(40_000);
    // Not on all endpoints, where one answered the first only after its result.
    await until(() => at.requests() >= 8, "the second extension");
    await expectBacked(lock, resource);
  });

  test("the second of two concurrent extensions counts", async () => {
    const resource = newResource();
    const { redlock } = at.client({ ttl: 60_000 });
    const lock = await redlock.acquire(resource);
    const [first, second] = await Promise.all([lock.extend(5_000), lock.extend(50_000)]);
    expect(first).toBeLessThan(5_000);
    expect(second).toBeGreaterThan(40_000);
    await expectBacked(lock, resource);
  });

  test("an extension without a quorum keeps the old validity, and the next may succeed", async () => {
    const resource = newResource();
    const { redlock, events } = at.client({ ttl: 30_000, timeout: 1_000 });
    const lock = await redlock.acquire(resource);
    for (const { faults } of at.local.endpoints.slice(1)) faults.add({ fault: "status", status: 503 });
    const before = lock.remaining();
    const error = (await rejection(lock.extend())) as QuorumError;
    expect(error).toBeInstanceOf(QuorumError);
    expect(error.votes.map(({ outcome }) => outcome)).toContain("error");
    expect(lock.remaining()).toBeGreaterThan(before - 5_000);
    expect(lock.signal.aborted).toBe(false);
    for (const { faults } of at.local.endpoints) faults.clear();
    expect(await lock.extend()).toBeGreaterThan(29_000);
    expect(events.filter(({ type }) => type === "extended")).toHaveLength(1);
  });

  test("auto-extension retries after failures, with pauses, while validity remains", async () => {
    const resource = newResource();
    const { redlock, events } = at.client({ ttl: 3_000, backoff: { min: 20, max: 60 } });
    await redlock.using(resource, async (lock) => {
      for (const { faults } of at.local.endpoints) faults.add({ fault: "status", times: 2 });
      await until(() => events.some(({ type }) => type === "extended"), "an extension");
      expect(events.filter(({ type }) => type === "endpointError").length).toBeGreaterThanOrEqual(6);
      expect(await lock.verify()).toBe(true);
    });
    // Not in a tight loop: the acquire, two failures, the extension, its verification and the release.
    expect(at.requests()).toBeLessThanOrEqual(3 * 8);
  });

  test("a duplicate acquire request that is executed late does not shorten an extension", async () => {
    const resource = newResource();
    const { redlock } = at.client({ ttl: 5_000, fencing: true });
    const lock = await redlock.acquire(resource);
    await until(async () => (await at.local.holders(resource)) === 3, "all three endpoints");
    const acquires = at.gateways.map(({ requests }) => requests[0]!.command);
    await lock.extend(60_000);
    for (const [index, acquire] of acquires.entries()) await at.local.endpoints[index]!.execute(acquire);
    await expectBacked(lock, resource);
  });
});
