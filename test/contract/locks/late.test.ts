import { describe, expect, test } from "vitest";
import { EndpointError, QuorumError } from "../../../src/index.ts";
import { gated } from "../../support/gated.ts";
import { latch } from "../../support/gateway.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { engines } from "../../support/redis-servers.ts";
import { until } from "../../support/until.ts";

const cases = [[engines[0]!, "redis"] as const, ["embedded", "upstash"] as const];

/** What may be asked for, and whether a request for it leaves a tombstone where it was withdrawn. */
const kinds = [
  ["plain", {}, false],
  ["fenced", { fencing: true }, true],
  ["with an own token", { token: "the-owner" }, true],
] as const;

describe.each(cases)("requests that are lost or late, on %s in the %s dialect", (engine, dialect) => {
  const one = gated(engine, 1, dialect);
  const three = gated(engine, 3, dialect);

  describe.each(kinds)("%s", (_, options, tombstones) => {
    test.each([true, false])("a reply lost after its execution leaves nothing (reset %s)", async (reset) => {
      for (const at of [one, three]) {
        const resource = newResource();
        const { redlock } = at.client({ timeout: reset ? 5_000 : 200 });
        for (const { faults } of at.local.endpoints) faults.add({ fault: "drop-reply", times: 1, reset });
        const error = (await rejection(redlock.tryAcquire(resource, options))) as QuorumError;
        expect(error).toBeInstanceOf(QuorumError);
        for (const { cause } of error.votes) {
          expect(cause).toBeInstanceOf(EndpointError);
          expect(cause?.kind).toBe(reset ? "network" : "timeout");
        }
        await until(async () => (await at.local.holders(resource)) === 0, "an empty database");
      }
    });

    test("acquire gets through after a lost reply, under one token", async () => {
      const resource = newResource();
      const { redlock } = one.client({ wait: 30_000, backoff: { min: 1, max: 5 } });
      one.local.endpoints[0]!.faults.add({ fault: "drop-reply", times: 1, reset: true });
      const lock = await redlock.acquire(resource, options);
      expect(await lock.verify()).toBe(true);
      expect(await lock.release()).toBe(true);
      expect(await one.local.holders(resource)).toBe(0);
    });

    test("a take that its withdrawal overtakes leaves nothing", async () => {
      const resource = newResource();
      const handed: Promise<unknown>[] = [];
      await three.local.put(resource, [0, 1]);
      const late = latch();
      const slow = three.gateways[2]!;
      slow.before = () => {
        slow.before = () => undefined;
        return late.opened;
      };
      const { redlock } = three.client({
        timeout: 1_200,
        ttl: 60_000,
        waitUntil: (promise) => handed.push(promise),
      });
      expect(await redlock.tryAcquire(resource, options)).toBeNull();
      await until(() => slow.executed.length === 1, "the withdrawal");
      late.open();
      // What was handed over covers the cleaning up: nothing else need be waited for.
      await Promise.all(handed);
      expect(slow.executed).toHaveLength(tombstones ? 2 : 3);
      expect(slow.executed[1]).toEqual(slow.requests[0]!.command);
      expect((await three.local.values(resource))[2]).toBeNull();
    });

    test("the same without waitUntil", async () => {
      const resource = newResource();
      await three.local.put(resource, [0, 1]);
      const late = latch();
      const slow = three.gateways[2]!;
      slow.before = () => {
        slow.before = () => undefined;
        return late.opened;
      };
      const { redlock } = three.client({ timeout: 1_200, ttl: 60_000 });
      expect(await redlock.tryAcquire(resource, options)).toBeNull();
      expect(slow.executed).toHaveLength(1);
      late.open();
      await until(() => slow.executed.length >= (tombstones ? 2 : 3), "the take and what follows it");
      expect((await three.local.values(resource))[2]).toBeNull();
    });

    test("a take that a release overtakes leaves nothing", async () => {
      const resource = newResource();
      const late = latch();
      const slow = three.gateways[2]!;
      slow.before = () => {
        slow.before = () => undefined;
        return late.opened;
      };
      const { redlock } = three.client({ timeout: 1_200, ttl: 60_000 });
      const lock = await redlock.acquire(resource, options);
      expect(await lock.release()).toBe(true);
      expect(slow.executed).toHaveLength(1);
      late.open();
      await until(() => slow.executed.includes(slow.requests[0]!.command), "the take");
      await until(async () => (await three.local.holders(resource)) === 0, "an empty database");
    });
  });

  describe.each(kinds.filter(([, , tombstones]) => tombstones))("%s", (_, options) => {
    test("a request executed twice takes, extends and frees once", async () => {
      const resource = newResource();
      for (const { faults } of three.local.endpoints) faults.add({ fault: "duplicate" });
      const { redlock } = three.client();
      const lock = await redlock.tryAcquire(resource, options);
      expect(await lock?.extend()).toBeGreaterThan(0);
      expect(await redlock.tryAcquire(resource)).toBeNull();
      // The second execution of a release finds nothing any more: false, for what is true.
      await lock?.release();
      expect(await three.local.holders(resource)).toBe(0);
    });

    test("a take that is executed after it was given up finds its tombstone", async () => {
      const resource = newResource();
      for (const resources of [[resource], [resource, newResource()]]) {
        const late = latch();
        const [slow] = one.gateways;
        slow!.before = () => {
          slow!.before = () => undefined;
          return late.opened;
        };
        const { redlock } = one.client({ timeout: 100, ttl: 60_000 });
        const before = slow!.executed.length;
        expect(await rejection(redlock.tryAcquire(resources, options))).toBeInstanceOf(QuorumError);
        await until(() => slow!.executed.length === before + 1, "the withdrawal");
        late.open();
        await until(() => slow!.executed.length === before + 2, "the take");
        for (const each of resources) expect(await one.local.holders(each)).toBe(0);
        // A tombstone is for its round alone.
        const lock = await redlock.tryAcquire(resources, { ...options, timeout: 5_000 });
        expect(await lock?.release()).toBe(true);
      }
    });

    test("a take that is executed after its lock was released finds a tombstone", async () => {
      const resource = newResource();
      const late = latch();
      const slow = three.gateways[2]!;
      slow.before = () => {
        slow.before = () => undefined;
        return late.opened;
      };
      const { redlock, events } = three.client({ timeout: 150, ttl: 60_000 });
      const lock = await redlock.acquire(resource, options);
      await until(() => events.some(({ type }) => type === "endpointError"), "its timeout");
      expect(await lock.release()).toBe(true);
      late.open();
      await until(() => slow.executed.includes(slow.requests[0]!.command), "the take");
      expect(await three.local.holders(resource)).toBe(0);
    });
  });

  test("an unfenced take that times out is withdrawn, with a typed error", async () => {
    const resource = newResource();
    const { redlock, events } = one.client({ timeout: 200 });
    const late = latch();
    one.gateways[0]!.after = ([name = "", , , condition]) =>
      name === "SET" && condition === "NX" ? late.opened : undefined;
    const error = (await rejection(redlock.acquire(resource, { wait: 0 }))) as QuorumError;
    expect(error).toBeInstanceOf(QuorumError);
    expect(error.code).toBe("NO_QUORUM");
    expect(error.votes).toEqual([
      { endpoint: "endpoint-1", outcome: "error", cause: expect.any(EndpointError) },
    ]);
    expect(error.votes[0]!.cause!.kind).toBe("timeout");
    expect(error.cause).toBe(error.votes[0]!.cause);
    await until(async () => (await one.local.holders(resource)) === 0, "an empty database");
    expect(events.map(({ type }) => type)).toEqual(["endpointError"]);
    late.open();
  });

  test("a renewal that is executed after the release creates nothing", async () => {
    const resource = newResource();
    const { redlock } = one.client({ timeout: 400 });
    const lock = await redlock.acquire(resource);
    const late = latch();
    const [gateway] = one.gateways;
    gateway!.before = () => {
      gateway!.before = () => undefined;
      return late.opened;
    };
    expect(await rejection(lock.extend())).toBeInstanceOf(QuorumError);
    expect(await lock.release()).toBe(true);
    const next = await redlock.acquire(resource, { ttl: 60_000 });
    late.open();
    await until(() => gateway!.executed.length === 4, "the renewal");
    expect(await next.verify()).toBe(true);
    expect((await one.local.expiries(resource))[0]).toBeGreaterThan(50_000);
  });

  test("a release that is executed late frees nobody else's lock", async () => {
    const resource = newResource();
    const { redlock } = one.client({ timeout: 400, backoff: { min: 1, max: 5 } });
    const lock = await redlock.acquire(resource);
    const late = latch();
    const [gateway] = one.gateways;
    gateway!.before = () => {
      gateway!.before = () => undefined;
      return late.opened;
    };
    expect(await rejection(lock.release())).toBeInstanceOf(QuorumError);
    expect(lock.remaining()).toBe(0);
    expect(await lock.release()).toBe(true);
    const next = await redlock.acquire(resource);
    late.open();
    await until(() => gateway!.executed.length === 4, "the release");
    expect(await next.verify()).toBe(true);
  });
});
