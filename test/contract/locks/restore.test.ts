import { describe, expect, test } from "vitest";
import { inspect, LockLostError } from "../../../src/index.ts";
import { gated } from "../../support/gated.ts";
import { latch } from "../../support/gateway.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { bestEngine } from "../../support/redis-servers.ts";
import { until } from "../../support/until.ts";

// An extension restores the lock where an endpoint has lost it, so that a long hold survives successive restarts.

const cases = [[bestEngine, "redis"] as const, ["embedded", "upstash"] as const];
const kinds = [
  ["plain", {}],
  ["fenced", { fencing: true }],
  ["with an owner token", { token: "the-owner" }],
] as const;

describe.each(cases)("an extension, on %s in the %s dialect", (engine, dialect) => {
  const at = gated(engine, 3, dialect);
  const restart = (index: number) => at.local.endpoints[index]!.execute(["FLUSHALL"]);
  const holders = (resource: string) => at.local.holders(resource);

  test.each(kinds)("restores a %s lock on each endpoint that restarts empty in turn", async (_, options) => {
    const resource = newResource();
    const { redlock } = at.client();
    const lock = await redlock.acquire(resource, { ...options, ttl: 30_000 });
    await until(async () => (await holders(resource)) === 3, "all endpoints");
    for (const index of [0, 1, 2]) {
      await restart(index);
      expect(await lock.extend()).toBeGreaterThan(20_000);
      await until(async () => (await holders(resource)) === 3, "the endpoint that was empty");
      expect(await redlock.tryAcquire(resource)).toBeNull();
    }
    if (lock.fence !== undefined) {
      const { votes } = await inspect(redlock, resource);
      for (const { fence } of votes) expect(fence).toBeGreaterThanOrEqual(lock.fence);
    }
    expect(await lock.release()).toBe(true);
    await until(async () => (await holders(resource)) === 0, "nothing left");
  });

  test("does not replace another lock, and restores nothing that a quorum has lost", async () => {
    const resource = newResource();
    const { redlock } = at.client();
    const lock = await redlock.acquire(resource, { ttl: 30_000 });
    await until(async () => (await holders(resource)) === 3, "all endpoints");
    await restart(0);
    await at.local.put(resource, [0]);
    const [other] = await at.local.values(resource);
    expect(await lock.extend()).toBeGreaterThan(20_000);
    await until(() => at.gateways[0]!.executed.length >= 3, "the attempt to restore it");
    expect((await at.local.values(resource))[0]).toBe(other);
    await restart(0);
    await restart(1);
    expect(await rejection(lock.extend())).toBeInstanceOf(LockLostError);
    expect((await at.local.values(resource)).slice(0, 2)).toEqual([null, null]);
  });

  test("of a lock with a late acquire: the release leaves a tombstone where it was restored, too", async () => {
    const resource = newResource();
    const late = latch();
    const slow = at.gateways[2]!;
    const acquires = (command: readonly string[]) => command.includes("acquire");
    slow.before = (command) => (acquires(command) ? late.opened : undefined);
    const { redlock } = at.client({ waitUntil: () => undefined });
    const lock = await redlock.acquire(resource, { fencing: true, ttl: 30_000 });
    await lock.extend();
    await until(async () => (await holders(resource)) === 3, "the restored lock");
    expect(await lock.release()).toBe(true);
    await until(async () => (await holders(resource)) === 0, "the release");
    late.open();
    await until(() => slow.executed.some(acquires), "the late acquire");
    expect(await holders(resource)).toBe(0);
  });

  test.each(kinds)("whose restore request is late leaves nothing of a %s lock", async (_, options) => {
    const resource = newResource();
    const late = latch();
    const { redlock } = at.client({ waitUntil: () => undefined });
    const lock = await redlock.acquire(resource, { ...options, ttl: 30_000 });
    await until(async () => (await holders(resource)) === 3, "all endpoints");
    await restart(2);
    const slow = at.gateways[2]!;
    const restores = (command: readonly string[]) => command.includes("restore");
    slow.before = (command) => (restores(command) ? late.opened : undefined);
    await lock.extend();
    await until(() => slow.requests.some(({ command }) => restores(command)), "the restore request");
    expect(await lock.release()).toBe(true);
    await until(() => slow.executed.some((command) => command.includes("release")), "the release");
    late.open();
    await until(() => slow.executed.some(restores), "the late request");
    expect(await holders(resource)).toBe(0);
  });
});
