import { describe, expect, test } from "vitest";
import type { AcquireOptions } from "../../../src/index.ts";
import { gated } from "../../support/gated.ts";
import { latch } from "../../support/gateway.ts";
import { eachInTurns } from "../../support/in-turns.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { rejection } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import { engines } from "../../support/redis-servers.ts";
import { until } from "../../support/until.ts";

const reasons = [new Error("the caller's own"), "a word", 0, undefined];

eachInTurns(engines.map((engine) => ({ engine })))("a caller's abort, on $engine", ({ engine }) => {
  const at = gated(engine, 3, "redis");

  /** Waits until the gateways have executed all their requests, and then until `own` keys hold the resource. */
  async function expectNothingLeft(resource: string, own = 0): Promise<void> {
    await until(
      () => at.gateways.every(({ executed, requests }) => executed.length === requests.length),
      "the executions",
    );
    await until(async () => (await at.local.holders(resource)) === own, `${own} keys`);
  }

  async function expectReason(call: Promise<unknown>, controller: AbortController): Promise<void> {
    expect(await rejection(call)).toBe(controller.signal.reason);
  }

  test("sends no request if it comes before the call", async () => {
    for (const reason of reasons) {
      const controller = new AbortController();
      controller.abort(reason);
      const { signal } = controller;
      const { redlock } = at.client();
      await expectReason(redlock.acquire(newResource(), { signal }), controller);
      await expectReason(redlock.tryAcquire(newResource(), { signal }), controller);
      await expectReason(
        redlock.using(newResource(), { signal }, () => 1),
        controller,
      );
    }
    expect(at.requests()).toBe(0);
  });

  describe.each<[string, AcquireOptions]>([
    ["plain", {}],
    ["fenced", { fencing: true }],
    ["with an owner token", { token: "the-owner" }],
  ])("%s", (_, options) => {
    test("leaves nothing if the requests are not executed yet", async () => {
      const resource = newResource();
      const controller = new AbortController();
      const requests = latch();
      let acquires = 0;
      for (const gateway of at.gateways) {
        gateway.before = () => (acquires++ < 3 ? requests.opened : undefined);
      }
      const { redlock, events } = at.client({ timeout: paced(400), ttl: 60_000 });
      const call = redlock.acquire(resource, { ...options, signal: controller.signal });
      await until(() => acquires === 3, "the requests");
      controller.abort(reasons[0]);
      await expectReason(call, controller);
      // Where it is fenced, the rollbacks overtake the requests. Otherwise they are sent again afterwards.
      await until(() => at.gateways.every(({ executed }) => executed.length > 0), "the rollbacks");
      if (Object.keys(options).length === 0) return requests.open();
      requests.open();
      await expectNothingLeft(resource);
      expect(events).toMatchObject([
        { type: "acquiring" },
        { type: "aborted", rounds: 1, error: controller.signal.reason },
      ]);
    });

    test("leaves nothing if the requests are executed but unanswered", async () => {
      const resource = newResource();
      const controller = new AbortController();
      const replies = latch();
      for (const gateway of at.gateways) gateway.after = () => replies.opened;
      const { redlock, events } = at.client({ timeout: 5_000, ttl: 60_000 });
      const call = redlock.acquire(resource, { ...options, signal: controller.signal });
      await until(async () => (await at.local.holders(resource)) === 3, "the executions");
      controller.abort(reasons[1]);
      await expectReason(call, controller);
      await expectNothingLeft(resource);
      expect(events).toMatchObject([
        { type: "acquiring" },
        { type: "aborted", rounds: 1, error: controller.signal.reason },
      ]);
      replies.open();
    });

    test("leaves nothing in the only round of tryAcquire", async () => {
      const resource = newResource();
      const controller = new AbortController();
      const replies = latch();
      for (const gateway of at.gateways) gateway.after = () => replies.opened;
      const { redlock } = at.client({ ttl: 60_000 });
      const call = redlock.tryAcquire(resource, { ...options, signal: controller.signal });
      await until(async () => (await at.local.holders(resource)) === 3, "the executions");
      controller.abort(reasons[0]);
      await expectReason(call, controller);
      replies.open();
      await expectNothingLeft(resource);
    });

    test("leaves nothing if some endpoints have answered", async () => {
      const resource = newResource();
      const controller = new AbortController();
      const replies = latch();
      for (const gateway of at.gateways.slice(1)) gateway.after = () => replies.opened;
      const { redlock } = at.client({ timeout: 5_000, ttl: 60_000 });
      const call = redlock.acquire(resource, { ...options, signal: controller.signal });
      await until(async () => (await at.local.holders(resource)) === 3, "the executions");
      controller.abort();
      await expectReason(call, controller);
      expect(controller.signal.reason).toHaveProperty("name", "AbortError");
      await expectNothingLeft(resource);
      replies.open();
    });

    test("ends the wait for a holder, which keeps its lock", async () => {
      const resource = newResource();
      const holder = await at.client().redlock.acquire(resource);
      await until(async () => (await at.local.holders(resource)) === 3, "all three endpoints");
      const controller = new AbortController();
      const { redlock, events } = at.client({ backoff: () => 50_000, wait: 100_000 });
      const call = redlock.acquire(resource, { ...options, signal: controller.signal });
      await until(() => events.some(({ type }) => type === "contended"), "contention");
      controller.abort(reasons[2]);
      await expectReason(call, controller);
      const before = at.requests();
      await expectNothingLeft(resource, 3);
      expect(await holder.verify()).toBe(true);
      expect(at.requests()).toBe(before + 3);
    });

    test("leaves nothing between two rounds, after a partial grant", async () => {
      const resource = newResource();
      await at.local.put(resource, [0, 1]);
      const controller = new AbortController();
      const { redlock } = at.client({
        wait: 100_000,
        backoff: { min: 50_000, max: 50_000 },
        onEvent: ({ type }) => type === "contended" && controller.abort(reasons[0]),
      });
      const call = redlock.acquire(resource, { ...options, signal: controller.signal });
      await expectReason(call, controller);
      await expectNothingLeft(resource, 2);
      expect((await at.local.values(resource))[2]).toBeNull();
    });

    test("changes nothing after the acquire", async () => {
      const controller = new AbortController();
      const lock = await at
        .client()
        .redlock.acquire(newResource(), { ...options, signal: controller.signal });
      controller.abort();
      expect(lock.signal.aborted).toBe(false);
      expect(await lock.verify()).toBe(true);
      expect(await lock.release()).toBe(true);
    });
  });

  test("leaves nothing during the round that raises the fence", async () => {
    const resource = newResource();
    const { redlock, events } = at.client({ timeout: 5_000, ttl: 60_000, fencing: true });
    // One endpoint's counter is ahead of the others.
    const first = await redlock.acquire(resource);
    await until(async () => (await at.local.holders(resource)) === 3, "all three endpoints");
    await first.release();
    const [ahead] = at.local.endpoints;
    const [counter] = (await ahead!.execute(["KEYS", "*fence*"])) as string[];
    await ahead!.execute(["SET", counter!, first.fence! + 1_000_000_000]);
    at.gateways[1]!.answer = () => "reset";

    const controller = new AbortController();
    const raising = latch();
    const held: string[] = [];
    for (const gateway of at.gateways) {
      gateway.before = (command) => {
        if (!command.includes("extend")) return;
        held.push(command[0]!);
        return raising.opened;
      };
    }
    const call = redlock.acquire(resource, { signal: controller.signal });
    await until(() => held.length === 2, "the second round");
    controller.abort(reasons[0]);
    await expectReason(call, controller);
    raising.open();
    await until(async () => (await at.local.holders(resource)) === 0, "an empty database");
    expect(events.filter(({ type }) => type === "acquired")).toHaveLength(1);
  });

  test("ends every wait that shares the signal, and leaves no listener on it", async () => {
    const resource = newResource();
    await at.client().redlock.acquire(resource);
    const controller = new AbortController();
    const { signal } = controller;
    let listeners = 0;
    const { addEventListener, removeEventListener } = AbortSignal.prototype;
    signal.addEventListener = (...given: Parameters<typeof addEventListener>) => {
      listeners += 1;
      addEventListener.apply(signal, given);
    };
    signal.removeEventListener = (...given: Parameters<typeof removeEventListener>) => {
      listeners -= 1;
      removeEventListener.apply(signal, given);
    };
    const { redlock } = at.client({ backoff: { min: 1, max: 3 } });
    await rejection(redlock.acquire(resource, { signal, wait: 40 }));
    expect(listeners).toBe(0);
    const waiting = Array.from({ length: 4 }, () => redlock.acquire(resource, { signal, wait: 100_000 }));
    controller.abort(reasons[0]);
    for (const call of waiting) await expectReason(call, controller);
  });
});
