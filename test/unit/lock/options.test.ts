import { describe, expect, test, vi } from "vitest";
import { EndpointError } from "../../../src/errors.ts";
import {
  type AcquireOptions,
  checkAcquire,
  checkBackoff,
  checkResources,
  type LockOptions,
  mergeOptions,
  resolveSettings,
  timeUntil,
} from "../../../src/lock/options.ts";
import type { Backoff } from "../../../src/quorum/backoff.ts";
import { Redlock } from "../../../src/redlock.ts";
import { maxTimerDelay, systemRuntime } from "../../../src/runtime.ts";

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

  // What contract/locks/arguments.test.ts sends to a client, with its message, is here to the last number.
  test.each<[name: keyof LockOptions, accepted: unknown[], outOfRange: unknown[], ofOtherType: unknown[]]>([
    ["ttl", [10, maxTimerDelay], [9, 10.5, maxTimerDelay + 1, NaN, Infinity], ["10000", 10n, {}]],
    ["wait", [0, Infinity], [-1, NaN], ["5s"]],
    ["timeout", [1, 1.5, maxTimerDelay], [0, 0.5, maxTimerDelay + 1, Infinity], [false]],
    ["driftFactor", [0, 0.5], [-0.01, 0.51, NaN], ["1%"]],
    ["fenceRetention", [10_000, 2 ** 45], [9_999, 2 ** 45 + 1, 86_400_000.5], ["1d"]],
    ["maxHold", [0, Infinity], [-1, NaN], [[]]],
    ["prefix", ["a", "my app:locks"], ["", "a{b", "a}b"], [7]],
    ["fencing", [true], [], ["yes", 1]],
    ["autoExtend", [true], [], [0]],
    [
      "backoff",
      [
        { min: 1, max: 2 },
        { min: 7, max: 7 },
      ],
      [{ min: 0 }, { min: NaN }, { max: 0 }],
      [100, "fast"],
    ],
    ["waitUntil", [], [], [{}, "ctx"]],
    ["onEvent", [], [], ["log", {}]],
  ])(
    "%s may be one of %j, and is otherwise refused by its name",
    (name, accepted, outOfRange, ofOtherType) => {
      const resolve = (value: unknown) => resolveSettings(context, { [name]: value });
      for (const value of accepted) expect(resolve(value)[name]).toEqual(value);
      const said = expect.stringContaining(name);
      for (const [type, values] of [
        ["RangeError", outOfRange],
        ["TypeError", ofOtherType],
      ] as const) {
        const error = expect.objectContaining({ name: type, message: said });
        for (const value of values) expect(() => resolve(value)).toThrow(error);
      }
    },
  );

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

describe("checkAcquire", () => {
  test("returns valid input unchanged", () => {
    const options: AcquireOptions[] = [
      { signal: AbortSignal.abort(), deadline: 0 },
      { signal: undefined, deadline: Infinity },
    ];
    for (const each of options) expect(checkAcquire(each)).toBe(each);
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

test.each([
  [{ min: "5" }, TypeError, /backoff\.min.*"5"/],
  [{ max: 0 }, RangeError, /backoff\.max.*0/],
  [{ min: 50, max: 49 }, RangeError, /backoff\.max.*49/],
])("refuses the backoff %j by the name of its bound", (backoff, type, message) => {
  expect(() => checkBackoff(backoff as Backoff)).toThrow(type);
  expect(() => checkBackoff(backoff as Backoff)).toThrow(message);
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
