import { describe, expect, test } from "vitest";
import { resolveSettings } from "../../../src/lock/options.ts";
import { systemRuntime } from "../../../src/runtime/runtime.ts";

const context = { endpoints: [], runtime: systemRuntime };

describe("resolveSettings", () => {
  test("fills in the defaults", () => {
    const { endpoints, runtime, turns, ownHolds, onFailure, ...settings } = resolveSettings(context);
    expect(settings).toEqual({
      ttl: 10_000,
      wait: 5_000,
      timeout: 1_000,
      driftFactor: 0.01,
      backoff: {},
      fencing: false,
      prefix: "redlock",
      waitUntil: undefined,
      autoExtend: false,
      maxHold: 300_000,
      onEvent: undefined,
    });
    expect({ endpoints, runtime }).toEqual(context);
    expect(onFailure).toBeTypeOf("function");
  });
});
