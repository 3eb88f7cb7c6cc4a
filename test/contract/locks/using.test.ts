import { expect, test } from "vitest";
import { LockLostError } from "../../../src/index.ts";
import { gated } from "../../support/gated.ts";
import { latch } from "../../support/gateway.ts";
import { eachInTurns } from "../../support/in-turns.ts";
import { newResource } from "../../support/local-endpoints.ts";
import { isSettled, rejection } from "../../support/outcomes.ts";
import { paced } from "../../support/pace.ts";
import { engines } from "../../support/redis-servers.ts";
import { until } from "../../support/until.ts";

eachInTurns(engines.map((engine) => ({ engine })))("using, when endpoints fail, on $engine", ({ engine }) => {
  const at = gated(engine, 3, "redis");

  test("the signal aborts while the keys still exist, even if extensions hang", async () => {
    const resource = newResource();
    const { redlock, events } = at.client({ ttl: 1_600, driftFactor: 0.4 });
    const hanging = latch();
    let existing = 0;
    const call = redlock.using(resource, async (lock) => {
      for (const gateway of at.gateways) gateway.before = () => hanging.opened;
      await new Promise((resolve) => lock.signal.addEventListener("abort", resolve));
      existing = await at.local.holders(resource);
      hanging.open();
      return "too late";
    });
    const error = await rejection(call);
    expect(error).toBeInstanceOf(LockLostError);
    expect(existing).toBeGreaterThanOrEqual(2);
    expect(events.map(({ type }) => type)).not.toContain("extended");
    expect(events.filter(({ type }) => type === "lost")).toHaveLength(1);
  });

  test("a failed release hides neither the result nor the error of the routine", async () => {
    const { redlock } = at.client();
    const breakEndpoints = () => {
      for (const { faults } of at.local.endpoints) faults.add({ fault: "status", status: 500 });
    };
    const repairEndpoints = () => {
      for (const { faults } of at.local.endpoints) faults.clear();
    };
    expect(
      await redlock.using(newResource(), () => {
        breakEndpoints();
        return "the result";
      }),
    ).toBe("the result");
    repairEndpoints();
    const failure = new Error("the routine's own");
    const call = redlock.using(newResource(), () => {
      breakEndpoints();
      throw failure;
    });
    expect(await rejection(call)).toBe(failure);
    repairEndpoints();
    await expect(
      (async () => {
        await using lock = await redlock.acquire(newResource());
        breakEndpoints();
        return lock.ttl;
      })(),
    ).resolves.toBe(10_000);
  });

  test("the routine does not run if the lock cannot be acquired", async () => {
    let runs = 0;
    const { redlock } = at.client();
    const resource = newResource();
    await at.local.put(resource, [0, 1, 2]);
    const call = redlock.using(resource, { wait: 0 }, () => runs++);
    expect(await rejection(call)).toHaveProperty("code", "LOCK_HELD");
    for (const { faults } of at.local.endpoints) faults.add({ fault: "down" });
    const other = redlock.using(newResource(), { wait: 0 }, () => runs++);
    expect(await rejection(other)).toHaveProperty("code", "NO_QUORUM");
    expect(runs).toBe(0);
  });

  test("a lock that another client acquired meanwhile stays with that client", async () => {
    const resource = newResource();
    const { redlock } = at.client({ ttl: 60_000 });
    const call = redlock.using(resource, async (lock) => {
      await at.local.remove(resource);
      await at.local.put(resource, [0, 1, 2]);
      expect(await lock.verify()).toBe(false);
    });
    expect(await rejection(call)).toBeInstanceOf(LockLostError);
    expect(await at.local.values(resource)).toEqual(Array(3).fill("somebody-else"));
  });

  test("a backoff that throws does not end the process", async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => unhandled.push(reason);
    process.on("unhandledRejection", note);
    try {
      const failure = new Error("the backoff's own");
      const backoff = () => {
        throw failure;
      };
      const { redlock, events } = at.client({ ttl: paced(600), backoff });
      const call = redlock.using(newResource(), async (lock) => {
        for (const { faults } of at.local.endpoints) faults.add({ fault: "down" });
        await until(() => lock.signal.aborted, "the loss");
      });
      expect(await rejection(call)).toBeInstanceOf(LockLostError);
      expect(events.some(({ type }) => type === "endpointError")).toBe(true);
      expect(await rejection(redlock.acquire(newResource()))).toBe(failure);
      await isSettled(Promise.resolve());
      expect(unhandled).toEqual([]);
    } finally {
      process.off("unhandledRejection", note);
    }
  });
});
