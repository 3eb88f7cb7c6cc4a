import { describe, expect, test } from "vitest";
import { EndpointError, QuorumError } from "../../../src/index.ts";
import { gated } from "../../support/gated.ts";
import { latch } from "../../support/gateway.ts";
import { eachInTurns } from "../../support/in-turns.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import { bestEngine } from "../../support/redis-servers.ts";
import { until } from "../../support/until.ts";

const cases = [
  { engine: bestEngine, dialect: "redis" },
  { engine: "embedded", dialect: "upstash" },
] as const;

/** Kinds of locks, and whether the rollback of their acquire request leaves a tombstone. */
const kinds = [
  ["plain", {}, false],
  ["fenced", { fencing: true }, true],
  ["with an owner token", { token: "the-owner" }, true],
] as const;

eachInTurns(cases)(
  "requests that are lost or late, on $engine in the $dialect dialect",
  ({ engine, dialect }) => {
    const one = gated(engine, 1, dialect);
    const three = gated(engine, 3, dialect);

    describe.each(kinds)("%s", (_, options, tombstones) => {
      test.each([true, false])(
        "a reply lost after its execution leaves nothing (reset %s)",
        async (reset) => {
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
        },
      );

      test("acquire succeeds after a lost reply", async () => {
        const resource = newResource();
        const { redlock } = one.client({ wait: 30_000, backoff: { min: 1, max: 5 } });
        one.local.endpoints[0]!.faults.add({ fault: "drop-reply", times: 1, reset: true });
        const lock = await redlock.acquire(resource, options);
        expect(await lock.verify()).toBe(true);
        expect(await lock.release()).toBe(true);
        expect(await one.local.holders(resource)).toBe(0);
      });

      test("an acquire that its rollback overtakes leaves nothing", async () => {
        const resource = newResource();
        const background: Promise<unknown>[] = [];
        await three.local.put(resource, [0, 1]);
        const late = latch();
        const slow = three.gateways[2]!;
        slow.before = () => {
          slow.before = () => undefined;
          return late.opened;
        };
        const { redlock } = three.client({
          timeout: paced(1_200),
          ttl: 60_000,
          waitUntil: (promise) => background.push(promise),
        });
        expect(await redlock.tryAcquire(resource, options)).toBeNull();
        await until(() => slow.executed.length === 1, "the rollback");
        late.open();
        // The promises passed to waitUntil cover the rollback: nothing else needs to be awaited.
        await Promise.all(background);
        expect(slow.executed).toHaveLength(tombstones ? 2 : 3);
        expect(slow.executed[1]).toEqual(slow.requests[0]!.command);
        expect((await three.local.values(resource))[2]).toBeNull();
      });

      test("an acquire that its rollback overtakes leaves nothing without waitUntil, either", async () => {
        const resource = newResource();
        await three.local.put(resource, [0, 1]);
        const late = latch();
        const slow = three.gateways[2]!;
        slow.before = () => {
          slow.before = () => undefined;
          return late.opened;
        };
        const { redlock } = three.client({ timeout: paced(1_200), ttl: 60_000 });
        expect(await redlock.tryAcquire(resource, options)).toBeNull();
        expect(slow.executed).toHaveLength(1);
        late.open();
        await until(() => slow.executed.length >= (tombstones ? 2 : 3), "the acquire and its rollback");
        expect((await three.local.values(resource))[2]).toBeNull();
      });

      test("an acquire that a release overtakes leaves nothing", async () => {
        const resource = newResource();
        const late = latch();
        const slow = three.gateways[2]!;
        slow.before = () => {
          slow.before = () => undefined;
          return late.opened;
        };
        const { redlock } = three.client({ timeout: paced(1_200), ttl: 60_000 });
        const lock = await redlock.acquire(resource, options);
        expect(await lock.release()).toBe(true);
        expect(slow.executed).toHaveLength(1);
        late.open();
        await until(() => slow.executed.includes(slow.requests[0]!.command), "the acquire");
        await until(async () => (await three.local.holders(resource)) === 0, "an empty database");
      });
    });

    describe.each(kinds.filter(([, , tombstones]) => tombstones))("%s", (_, options) => {
      test("a request that is executed twice acquires, extends and releases once", async () => {
        const resource = newResource();
        for (const { faults } of three.local.endpoints) faults.add({ fault: "duplicate" });
        const { redlock } = three.client();
        const lock = await redlock.tryAcquire(resource, options);
        expect(await lock?.extend()).toBeGreaterThan(0);
        expect(await redlock.tryAcquire(resource)).toBeNull();
        // May return false although it released the lock: its second execution finds nothing.
        await lock?.release();
        expect(await three.local.holders(resource)).toBe(0);
      });

      test("an acquire that is executed after it was given up finds its tombstone", async () => {
        const resource = newResource();
        for (const resources of [[resource], [resource, newResource()]]) {
          const late = latch();
          const [slow] = one.gateways;
          slow!.before = () => {
            slow!.before = () => undefined;
            return late.opened;
          };
          const { redlock } = one.client({ timeout: paced(100), ttl: 60_000 });
          const before = slow!.executed.length;
          expect(await rejection(redlock.tryAcquire(resources, options))).toBeInstanceOf(QuorumError);
          await until(() => slow!.executed.length === before + 1, "the rollback");
          late.open();
          await until(() => slow!.executed.length === before + 2, "the acquire");
          for (const each of resources) expect(await one.local.holders(each)).toBe(0);
          // A tombstone blocks only its own round.
          const lock = await redlock.tryAcquire(resources, { ...options, timeout: 5_000 });
          expect(await lock?.release()).toBe(true);
        }
      });

      test("an acquire that is executed after its lock was released finds a tombstone", async () => {
        const resource = newResource();
        const late = latch();
        const slow = three.gateways[2]!;
        slow.before = () => {
          slow.before = () => undefined;
          return late.opened;
        };
        const { redlock, events } = three.client({ timeout: paced(150), ttl: 60_000 });
        const lock = await redlock.acquire(resource, options);
        await until(() => events.some(({ type }) => type === "endpointError"), "its timeout");
        expect(await lock.release()).toBe(true);
        late.open();
        await until(() => slow.executed.includes(slow.requests[0]!.command), "the acquire");
        expect(await three.local.holders(resource)).toBe(0);
      });
    });

    test("an unfenced acquire that times out is rolled back, and rejects with a QuorumError", async () => {
      const resource = newResource();
      const { redlock, events } = one.client({ timeout: paced(200) });
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
      expect(events.map(({ type }) => type)).toEqual(["acquiring", "endpointError", "notAcquired"]);
      late.open();
    });

    test("an extension that is executed after the release creates nothing", async () => {
      const resource = newResource();
      const { redlock } = one.client({ timeout: paced(400) });
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
      await until(() => gateway!.executed.length === 4, "the extension");
      expect(await next.verify()).toBe(true);
      expect((await one.local.expiries(resource))[0]).toBeGreaterThan(50_000);
    });

    test("a release that is executed late does not release another holder's lock", async () => {
      const resource = newResource();
      const { redlock } = one.client({ timeout: paced(400), backoff: { min: 1, max: 5 } });
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
  },
);
