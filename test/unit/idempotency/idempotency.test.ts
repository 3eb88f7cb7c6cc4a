import { expect, test } from "vitest";
import { type IdempotencyOptions, resolveIdempotency } from "../../../src/idempotency/idempotency.ts";
import type { LockOptions } from "../../../src/lock/options.ts";
import { systemRuntime } from "../../../src/runtime/runtime.ts";

function resolve(options: IdempotencyOptions, client: LockOptions = {}) {
  const parts = { settings: { endpoints: [], runtime: systemRuntime }, options: { timeout: 100, ...client } };
  const { settings, ...rest } = resolveIdempotency(parts, options);
  const { ttl, wait, timeout, maxHold, prefix } = settings;
  return { lease: ttl, wait, timeout, maxHold, prefix, ...rest };
}

test("runs have defaults of their own, except those of the client's requests", () => {
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
