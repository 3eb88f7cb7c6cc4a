import { describe, expect, test } from "vitest";
import { hashKey } from "../../../src/idempotency/digest.ts";
import {
  Idempotency,
  type IdempotencyOptions,
  resolveIdempotency,
} from "../../../src/idempotency/idempotency.ts";
import { forgetKey, inspectKey } from "../../../src/idempotency/index.ts";
import type { LockOptions } from "../../../src/lock/options.ts";
import { maxTimerDelay, systemRuntime } from "../../../src/runtime/runtime.ts";
import { rejection } from "../../support/outcomes.ts";
import { until } from "../../support/until.ts";
import { virtualWorld } from "../../support/virtual-client.ts";

// The options of runs: defaults, bounds, and what is refused before anything is sent.

const never = () => expect.unreachable("nothing may run");

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

  test.each<[keyof IdempotencyOptions, ...unknown[]]>([
    ["lease", 10, 30_000, maxTimerDelay],
    ["retention", 30_000, 2 ** 45],
    ["wait", 0, 0.5, Infinity],
    ["timeout", 1, 250],
    ["maxHold", 0, Infinity],
    ["maxAttempts", 1, Number.MAX_SAFE_INTEGER],
    ["maxResult", 1_000, 4_000_000],
    ["onEvent", never],
  ])("%s may be %s", (name, ...values) => {
    for (const value of values) {
      const retention = name === "lease" ? { retention: 2 ** 45 } : {};
      const resolved: Record<string, unknown> = resolve({ ...retention, [name]: value });
      expect(resolved[name]).toBe(value);
    }
  });
});

describe("an Idempotency", () => {
  test("has the record and the count of a key under names that contain the key's hash", async () => {
    const world = virtualWorld({ count: 1 });
    const idempotency = new Idempotency(world.client({ prefix: "shop" }).redlock, { maxAttempts: 3 });
    for (const [scope, parts] of [
      [undefined, []],
      ["a", "a"],
      [
        ["a", "b"],
        ["a", "b"],
      ],
    ] as const) {
      const { engine } = world.endpoints[0]!;
      engine.execute(["FLUSHALL"]);
      await idempotency.run("k", scope ? { scope } : {}, () => 1);
      const hash = await hashKey(parts, "k", "run");
      expect((engine.execute(["KEYS", "*"]) as string[]).sort()).toEqual([
        `shop:idem:{${hash}}`,
        `shop:tries:{${hash}}`,
      ]);
    }
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
