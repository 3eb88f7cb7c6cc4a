import { afterEach, describe, expect, test } from "vitest";
import {
  forceRelease,
  inspect,
  LockHeldError,
  QuorumError,
  Redlock,
  systemRuntime,
} from "../../../src/index.ts";
import { eachEngine } from "../../support/each-engine.ts";
import { gated } from "../../support/gated.ts";
import { type Gateway, latch, startGateway } from "../../support/gateway.ts";
import { type Local, newResource, openLocal } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import { engines } from "../../support/redis-servers.ts";
import { until } from "../../support/until.ts";

eachEngine(engines)("contenders that split the endpoints, on %s", (engine) => {
  const gateways: Gateway[] = [];
  let local: Local | undefined;
  afterEach(async () => {
    await Promise.all(gateways.splice(0).map((gateway) => gateway.close()));
    await local?.close();
  });

  /** Clients of which each acquires exactly its own share of the endpoints in the first round. */
  async function split(count: number, contenders: number): Promise<Redlock[]> {
    const opened = await openLocal({ engine, count });
    local = opened;
    const share = count / contenders;
    const [acquired, refused] = [latch(), latch()];
    let acquires = 0;
    let refusals = 0;
    return Promise.all(
      Array.from({ length: contenders }, async (_, contender) => {
        const endpoints = await Promise.all(
          opened.endpoints.map(async (endpoint, index) => {
            const gateway = await startGateway(endpoint);
            gateways.push(gateway);
            const own = Math.floor(index / share) === contender;
            // A request reaches another client's endpoint only after that client has acquired it, and no answer
            // arrives before all requests have been executed.
            gateway.before = () => (own || gateway.requests.length > 1 ? undefined : acquired.opened);
            gateway.after = () => {
              if (gateway.requests.length > 1) return;
              if (own && ++acquires === count) acquired.open();
              if (!own && ++refusals === count * (contenders - 1)) refused.open();
              return refused.opened;
            };
            return gateway.endpoint("redis");
          }),
        );
        return new Redlock({ endpoints, timeout: 10_000, ttl: 60_000, backoff: { min: 2, max: 30 } });
      }),
    );
  }

  test.each([
    [2, 2],
    [4, 2],
    [3, 3],
  ])("%i endpoints, %i contenders: tryAcquire returns null to each", async (count, contenders) => {
    const resource = newResource();
    const clients = await split(count, contenders);
    const outcomes = await Promise.all(clients.map((client) => client.tryAcquire(resource)));
    expect(outcomes).toEqual(clients.map(() => null));
    expect(await local!.holders(resource)).toBe(0);
  });

  test.each([
    [2, 2],
    [4, 2],
    [3, 3],
  ])("%i endpoints, %i contenders: each acquires the lock soon", async (count, contenders) => {
    const resource = newResource();
    const clients = await split(count, contenders);
    let rounds = 0;
    const turns = await Promise.all(
      clients.map((client) =>
        client.using(
          resource,
          { wait: 30_000, onEvent: ({ type }) => type === "contended" && rounds++ },
          (lock) => lock.verify(),
        ),
      ),
    );
    expect(turns).toEqual(clients.map(() => true));
    // The split cost each of them a round; a partial grant that stayed would cost a ttl of 60 s.
    expect(rounds).toBeGreaterThanOrEqual(contenders);
    expect(await local!.holders(resource)).toBe(0);
  });
});

describe("endpoints that are down or slow", () => {
  const three = gated("embedded", 3, "redis");
  const five = gated("embedded", 5, "redis");

  test("with one of three slow, the result does not wait for it", async () => {
    const resource = newResource();
    const slow = latch();
    three.gateways[0]!.before = () => slow.opened;
    const lock = await three.client({ timeout: 20_000, ttl: 60_000 }).redlock.acquire(resource);
    expect(three.gateways[0]!.executed).toEqual([]);
    expect(three.requests()).toBe(3);
    expect(await lock.extend()).toBeGreaterThan(50_000);
    expect(three.gateways[0]!.executed).toEqual([]);
    slow.open();
    expect(await lock.release()).toBe(true);
    await until(async () => (await three.local.holders(resource)) === 0, "an empty database");
  });

  test("with one of three down or silent, acquire and release succeed", async () => {
    const resource = newResource();
    for (const reply of ["reset", "hang"] as const) {
      three.gateways[1]!.answer = () => reply;
      const before = three.requests();
      const lock = await three.client({ timeout: paced(600) }).redlock.acquire(resource);
      expect(three.requests() - before).toBe(3);
      expect(await lock.release()).toBe(true);
    }
  });

  test("with one of five down and one slow, acquire and release succeed", async () => {
    const resource = newResource();
    const slow = latch();
    five.gateways[0]!.answer = () => "reset";
    five.gateways[4]!.before = () => slow.opened;
    const lock = await five.client({ timeout: 20_000, ttl: 60_000 }).redlock.acquire(resource);
    expect(five.gateways[4]!.executed).toEqual([]);
    expect(five.requests()).toBe(5);
    slow.open();
    expect(await lock.release()).toBe(true);
    await until(async () => (await five.local.holders(resource)) === 0, "an empty database");
  });

  test("with waitUntil, a release ends on a quorum and the rest runs in the background", async () => {
    const resource = newResource();
    const background: Promise<unknown>[] = [];
    const context = {
      waitUntil(this: unknown, promise: Promise<unknown>) {
        if (this !== context) throw new TypeError("Illegal invocation");
        background.push(promise);
      },
    };
    const { redlock } = three.client({ waitUntil: context, timeout: 20_000 });
    const lock = await redlock.acquire(resource);
    await until(async () => (await three.local.holders(resource)) === 3, "all three endpoints");
    const slow = latch();
    three.gateways[2]!.before = () => slow.opened;
    expect(await lock.release()).toBe(true);
    expect(await three.local.holders(resource)).toBe(1);
    expect(background.length).toBeGreaterThan(0);
    slow.open();
    await Promise.all(background);
    expect(await three.local.holders(resource)).toBe(0);
  });
});

describe.each(["redis", "upstash"] as const)("contention and outage, in the %s dialect", (dialect) => {
  const at = gated("embedded", 3, dialect);
  const orders = [
    [0, 1, 2],
    [0, 2, 1],
    [1, 0, 2],
    [1, 2, 0],
    [2, 0, 1],
    [2, 1, 0],
  ];

  /** Makes the endpoints answer in this order. The first `down` of them reset the connection instead. */
  async function inOrder(order: readonly number[], down: number, call: () => Promise<unknown>) {
    const turns = at.gateways.map(() => latch());
    let answered = 0;
    at.gateways.forEach((gateway, index) => {
      const { answer } = gateway;
      gateway.answer = async (request) => {
        await turns[index]!.opened;
        const reply = index < down ? "reset" : await answer(request);
        answered += 1;
        return reply;
      };
    });
    const outcome = call().catch((error: unknown) => error);
    for (const [position, index] of order.entries()) {
      turns[index]!.open();
      await until(() => answered > position, "its answer");
    }
    return outcome;
  }

  test.each(orders)("one down, held on the others is contention: %i, %i, %i", async (...order) => {
    for (const fencing of [false, true]) {
      const resource = newResource();
      await at.local.put(resource, [1, 2]);
      const { redlock, events } = at.client({ fencing, timeout: 10_000, ttl: 60_000 });
      expect(await inOrder(order, 1, () => redlock.tryAcquire(resource))).toBeNull();
      expect(events.map(({ type }) => type)).toContain("contended");
    }
  });

  test.each(orders)("one down, held on one of the others is an outage: %i, %i, %i", async (...order) => {
    const resource = newResource();
    await at.local.put(resource, [1]);
    const { redlock, events } = at.client({ timeout: 10_000, ttl: 60_000 });
    const error = await inOrder(order, 1, () => redlock.tryAcquire(resource));
    expect(error).toBeInstanceOf(QuorumError);
    const votes = (error as QuorumError).votes.map(({ outcome }) => outcome);
    expect(votes).toEqual(["error", "held", "granted"]);
    expect(events.map(({ type }) => type)).not.toContain("contended");
    expect((await at.local.values(resource))[2]).toBeNull();
  });

  test.each(orders)("two down is an outage, held or not: %i, %i, %i", async (...order) => {
    for (const held of [[], [2]]) {
      const resource = newResource();
      await at.local.put(resource, held);
      const { redlock } = at.client({ timeout: 10_000, ttl: 60_000 });
      const error = await inOrder(order, 2, () => redlock.tryAcquire(resource));
      expect(error).toBeInstanceOf(QuorumError);
      expect((error as QuorumError).votes.filter(({ outcome }) => outcome === "error")).toHaveLength(2);
      expect((await at.local.values(resource))[2]).toBe(held.length ? "somebody-else" : null);
      expect(await rejection(inspect(redlock, resource))).toBeInstanceOf(QuorumError);
      expect(await rejection(forceRelease(redlock, resource))).toBeInstanceOf(QuorumError);
    }
  });

  test("with two down, the result does not wait for a third that cannot change it", async () => {
    const slow = latch();
    for (const gateway of at.gateways.slice(0, 2)) gateway.answer = () => "reset";
    at.gateways[2]!.before = () => (at.gateways[2]!.requests.length === 1 ? slow.opened : undefined);
    const { redlock } = at.client({ timeout: 2_000, ttl: 60_000 });
    const error = (await rejection(redlock.tryAcquire(newResource()))) as QuorumError;
    expect(error.votes.map(({ outcome }) => outcome)).toEqual(["error", "error", "pending"]);
    slow.open();
  });

  test("acquire retries through both, and reports the last round", async () => {
    const resource = newResource();
    const { redlock, events } = at.client({ backoff: { min: 2, max: 10 }, wait: 60_000 });
    for (const { faults } of at.local.endpoints) faults.add({ fault: "status", status: 502, html: true });
    const waiting = redlock.acquire(resource);
    await until(() => events.filter(({ type }) => type === "endpointError").length >= 6, "two rounds");
    for (const { faults } of at.local.endpoints) faults.clear();
    const lock = await waiting;
    expect(await lock.verify()).toBe(true);
    expect(await rejection(redlock.acquire(resource, { wait: 30 }))).toBeInstanceOf(LockHeldError);
    for (const { faults } of at.local.endpoints) faults.add({ fault: "status", status: 502, html: true });
    expect(await rejection(redlock.acquire(resource, { wait: 30 }))).toBeInstanceOf(QuorumError);
  });

  test("a lock that is lost on a quorum is distinguished from one with too few answers", async () => {
    const resource = newResource();
    const { redlock } = at.client();
    const lock = await redlock.acquire(resource);
    await at.local.remove(resource, [0]);
    at.gateways[1]!.answer = () => "reset";
    expect(await rejection(lock.verify())).toBeInstanceOf(QuorumError);
    expect(await rejection(lock.extend())).toBeInstanceOf(QuorumError);
    expect(lock.signal.aborted).toBe(false);
    await at.local.remove(resource, [2]);
    expect(await lock.verify()).toBe(false);
    expect(lock.signal.aborted).toBe(true);
  });
});

describe("a lock that has expired on arrival", () => {
  const at = gated("embedded", 3, "redis");

  test.each([false, true])("is never returned, and is rolled back (fencing %s)", async (fencing) => {
    for (const clock of ["now", "monotonic"] as const) {
      const resource = newResource();
      let jump = 0;
      const read = systemRuntime[clock];
      const runtime = { ...systemRuntime, [clock]: () => read() + jump };
      const replies = latch();
      for (const gateway of at.gateways) gateway.after = () => replies.opened;
      const { redlock, events } = at.client({ runtime, fencing, timeout: 20_000, ttl: 30_000 });
      const acquiring = rejection(redlock.tryAcquire(resource));
      await until(async () => (await at.local.holders(resource)) === 3, "its execution");
      // The process was frozen, or the wall clock stepped: the ttl may be over.
      jump = 29_800;
      replies.open();
      const error = await acquiring;
      expect(error).toBeInstanceOf(QuorumError);
      expect((error as Error).message).toContain("too late");
      expect(await at.local.holders(resource)).toBe(0);
      expect(events.map(({ type }) => type)).toEqual(["acquiring", "notAcquired"]);
    }
  });
});
