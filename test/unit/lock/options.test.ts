import { describe, expect, test, vi } from "vitest";
import { EndpointError } from "../../../src/errors.ts";
import { checkResources, mergeOptions, resolveSettings, timeUntil } from "../../../src/lock/options.ts";
import { Redlock } from "../../../src/redlock.ts";
import { systemRuntime } from "../../../src/runtime.ts";

const context = { endpoints: [], runtime: systemRuntime };

describe("resolveSettings", () => {
  test("fills in the defaults", () => {
    const { endpoints, runtime, latencies, onFailure, ...settings } = resolveSettings(context);
    expect(settings).toEqual({
      ttl: 10_000,
      wait: 5_000,
      timeout: 1_000,
      driftFactor: 0.01,
      backoff: {},
      fencing: false,
      fenceRetention: 86_400_000,
      prefix: "redlock",
      waitUntil: undefined,
      autoExtend: false,
      maxHold: 300_000,
      onEvent: undefined,
    });
    expect({ endpoints, runtime }).toEqual(context);
    expect(onFailure).toBeTypeOf("function");
  });

  test.each([
    [{ ttl: 900 }, "timeout", 300],
    [{ ttl: 10 }, "timeout", 10 / 3],
    [{ ttl: 60_000 }, "timeout", 1_000],
    [{ ttl: 200_000_000 }, "fenceRetention", 200_000_000],
  ] as const)("%j changes the default of %s to %d", (options, name, value) => {
    expect(resolveSettings(context, options)[name]).toBe(value);
  });

  test("later layers win, and undefined erases nothing", () => {
    const layers = [
      { ttl: 20_000, wait: 1 },
      undefined,
      { ttl: 30_000, wait: undefined },
      { ttl: undefined },
    ];
    expect(resolveSettings(context, ...layers)).toMatchObject({ ttl: 30_000, wait: 1 });
    for (const name of Object.keys(resolveSettings(context))) {
      expect(resolveSettings(context, { [name]: undefined })).toMatchObject({
        ttl: 10_000,
        prefix: "redlock",
      });
    }
  });

  test("onFailure reports the failed endpoint to the hook", () => {
    const onEvent = vi.fn();
    const error = new EndpointError("eu", "timeout", "no answer");
    resolveSettings(context, { onEvent }).onFailure?.(error);
    expect(onEvent.mock.calls).toEqual([[{ type: "endpointError", endpoint: "eu", error }]]);
    const { onFailure } = resolveSettings(context, {
      onEvent() {
        throw new Error("the hook's own");
      },
    });
    expect(() => onFailure?.(error)).not.toThrow();
  });
});

describe("mergeOptions", () => {
  test("returns a new object without undefined values", () => {
    const first = { a: 1, b: undefined };
    const result = mergeOptions<{ a?: number; b?: number | undefined; c?: null }>(first, { c: null });
    expect(Object.entries(result)).toEqual([
      ["a", 1],
      ["c", null],
    ]);
    expect(first).toEqual({ a: 1, b: undefined });
  });
});

test.each([
  ["each once, in their order", ["b", "a", "b"], ["b", "a"]],
  ["a long name", "x".repeat(1_024), ["x".repeat(1_024)]],
  ["a hundred", Array.from({ length: 100 }, (_, index) => `r${index}`), expect.any(Array)],
])("resources: %s", (_what, given, expected) => {
  expect(checkResources(Object.freeze(given))).toEqual(expected);
});

test("a client's error about an endpoint names it, without its secrets", () => {
  const make = (url: string, token: string) => () => new Redlock({ endpoints: [{ url, token }] });
  expect(make("https://host", "secret token")).toThrow(/host/);
  expect(make("https://host", "secret token")).not.toThrow(/secret/);
  expect(make("https://me:pw@host", "t")).toThrow(/credentials/);
});

describe("timeUntil", () => {
  const runtime = { now: () => 5_000 };

  test("is what is left until the deadline", () => {
    expect(timeUntil(5_001, runtime)).toBe(1);
    expect(timeUntil(Infinity, runtime)).toBe(Infinity);
  });

  test.each([5_000, 4_999, 0])("%i is over", (deadline) => {
    expect(() => timeUntil(deadline, runtime)).toThrow(RangeError);
    expect(() => timeUntil(deadline, runtime)).toThrow("deadline");
  });
});
