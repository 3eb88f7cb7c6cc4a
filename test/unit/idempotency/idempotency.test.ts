import { describe, expect, test } from "vitest";
import { hashKey } from "../../../src/idempotency/digest.ts";
import {
  Idempotency,
  type IdempotencyOptions,
  resolveIdempotency,
} from "../../../src/idempotency/idempotency.ts";
import { forgetKey, inspectKey } from "../../../src/idempotency/index.ts";
import type { LockOptions } from "../../../src/lock/options.ts";
import { systemRuntime } from "../../../src/runtime/runtime.ts";
import { rejection } from "../../support/outcomes.ts";
import { until } from "../../support/until.ts";
import { virtualWorld } from "../../support/virtual-client.ts";

// Defaults of runs, and the names and timeouts of their keys. What is refused: test/contract/idempotency/arguments.test.ts.

function resolve(options: IdempotencyOptions, client: LockOptions = {}) {
  const parts = { settings: { endpoints: [], runtime: systemRuntime }, options: { timeout: 100, ...client } };
  const { settings, ...rest } = resolveIdempotency(parts, options);
  const { ttl, wait, timeout, maxHold, prefix } = settings;
  return { lease: ttl, wait, timeout, maxHold, prefix, ...rest };
}

describe("the options of runs", () => {
  test("have defaults of their own, except those of the client's requests", () => {
    expect(resolve({})).toEqual({
      lease: 30_000,
      retention: 86_400_000,
      wait: 0,
      timeout: 100,
      maxHold: 300_000,
      prefix: "redlock",
      maxAttempts: Infinity,
      maxResult: 1_000_000,
      onEvent: undefined,
    });
    expect(resolve({}, { ttl: 5_000, wait: 7_000, timeout: 70, prefix: "p" })).toMatchObject({
      lease: 30_000,
      wait: 0,
      timeout: 70,
      prefix: "p",
    });
  });
});

describe("an Idempotency", () => {
  test("has the record and the count of a key under names that contain the key's hash", async () => {
    const world = virtualWorld({ count: 1 });
    const idempotency = new Idempotency(world.client({ prefix: "shop" }).redlock, { maxAttempts: 3 });
    await idempotency.run("k", { scope: ["a", "b"] }, () => 1);
    const hash = await hashKey(["a", "b"], "k", "run");
    expect((world.endpoints[0]!.engine.execute(["KEYS", "*"]) as string[]).sort()).toEqual([
      `shop:idem:{${hash}}`,
      `shop:tries:{${hash}}`,
    ]);
  });

  test.each([70, 250])("reads and removes keys with a timeout of its own: %i ms", async (timeout) => {
    const world = virtualWorld({ count: 1 });
    const { redlock, links } = world.client();
    const idempotency = new Idempotency(redlock, { timeout: 180 });
    links[0]!.fate = () => "lost";
    for (const call of [inspectKey, forgetKey]) {
      const started = world.runtime.monotonic();
      const before = links[0]!.sent.length;
      const error = rejection(call(idempotency, "k", { timeout }) as Promise<unknown>);
      await until(() => links[0]!.sent.length > before, "its request");
      await world.runtime.advance(0);
      await world.runtime.advance(timeout);
      expect(String(await error)).toContain("no quorum");
      expect(world.runtime.monotonic() - started).toBe(timeout);
    }
  });
});
