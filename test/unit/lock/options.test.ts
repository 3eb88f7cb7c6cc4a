import { describe, expect, test, vi } from "vitest";
import { memoryEndpoint } from "../../../local/src/memory/index.ts";
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

  test.each<[name: keyof LockOptions, value: unknown]>([
    ["ttl", 10],
    ["ttl", maxTimerDelay],
    ["wait", 0],
    ["wait", Infinity],
    ["timeout", 1],
    ["timeout", 0.5 + 1],
    ["timeout", maxTimerDelay],
    ["driftFactor", 0],
    ["driftFactor", 0.5],
    ["fenceRetention", 10_000],
    ["fenceRetention", 2 ** 45],
    ["maxHold", 0],
    ["maxHold", Infinity],
    ["prefix", "a"],
    ["prefix", "my app:locks"],
    ["fencing", true],
    ["autoExtend", true],
    ["backoff", { min: 1, max: 2 }],
  ])("accepts %s %s", (name, value) => {
    expect(resolveSettings(context, { [name]: value })[name]).toEqual(value);
  });

  test.each<[name: string, value: unknown, type: new () => Error, shown?: string]>([
    ["ttl", 9, RangeError],
    ["ttl", 10.5, RangeError],
    ["ttl", maxTimerDelay + 1, RangeError],
    ["ttl", NaN, RangeError],
    ["ttl", Infinity, RangeError],
    ["ttl", "10000", TypeError, '"10000"'],
    ["ttl", 10n, TypeError, "bigint"],
    ["ttl", {}, TypeError, "got Object"],
    ["wait", -1, RangeError],
    ["wait", NaN, RangeError],
    ["wait", "5s", TypeError, '"5s"'],
    ["timeout", 0, RangeError],
    ["timeout", 0.5, RangeError],
    ["timeout", Infinity, RangeError],
    ["timeout", false, TypeError, "boolean"],
    ["driftFactor", -0.01, RangeError],
    ["driftFactor", 0.51, RangeError],
    ["driftFactor", NaN, RangeError],
    ["driftFactor", "1%", TypeError, '"1%"'],
    ["fenceRetention", 9_999, RangeError],
    ["fenceRetention", 2 ** 45 + 1, RangeError],
    ["fenceRetention", 86_400_000.5, RangeError],
    ["fenceRetention", "1d", TypeError, '"1d"'],
    ["maxHold", -1, RangeError],
    ["maxHold", NaN, RangeError],
    ["maxHold", [], TypeError, "got an empty array"],
    ["prefix", "", RangeError, "has 0"],
    ["prefix", "a{b", RangeError],
    ["prefix", "a}b", RangeError],
    ["prefix", 7, TypeError, "number"],
    ["fencing", "yes", TypeError, '"yes"'],
    ["fencing", 1, TypeError, "number"],
    ["autoExtend", 0, TypeError, "number"],
    ["backoff", 100, TypeError, "number"],
    ["backoff", { min: 0 }, RangeError, "0"],
    ["backoff", { min: 9, max: 8 }, RangeError, "8"],
    ["waitUntil", {}, TypeError, "got Object"],
    ["waitUntil", "ctx", TypeError, 'got "ctx"'],
    ["onEvent", "log", TypeError, '"log"'],
    ["onEvent", {}, TypeError, "got Object"],
  ])("refuses %s %s", (name, value, type, shown = String(value)) => {
    const attempt = () => resolveSettings(context, { [name]: value });
    expect(attempt).toThrow(type);
    expect(attempt).toThrow(name);
    expect(attempt).toThrow(shown);
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

  test("a message quotes only the beginning of a long text", () => {
    const attempt = () => resolveSettings(context, { ttl: "x".repeat(10_000) as never });
    expect(attempt).toThrow(/^.{1,200}$/s);
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
  test.each<[what: string, options: object, type: new () => Error, message: RegExp]>([
    ["an empty token", { token: "" }, RangeError, /token.*has 0/],
    ["a long token", { token: "t".repeat(256) }, RangeError, /token.*has 256/],
    ["a token that is not a string", { token: 5 }, TypeError, /token.*number/],
    ["a signal that is none", { signal: {} }, TypeError, /signal/],
    ["deadline NaN", { deadline: NaN }, RangeError, /deadline.*NaN/],
    ["a negative deadline", { deadline: -1 }, RangeError, /deadline.*-1/],
    ["a Date as deadline", { deadline: new Date() }, TypeError, /deadline.*got Date/],
  ])("refuses %s", (_what, options, type, message) => {
    expect(() => checkAcquire(options)).toThrow(type);
    expect(() => checkAcquire(options)).toThrow(message);
  });

  test("does not quote the token, which is a secret", () => {
    const token = `secret-${"x".repeat(300)}`;
    expect(() => checkAcquire({ token })).not.toThrow(/secret/);
    expect(() => checkAcquire({ token })).toThrow(/token/);
  });

  test("returns valid input unchanged", () => {
    const options: AcquireOptions[] = [
      {},
      { token: "t" },
      { token: "t".repeat(255) },
      { signal: AbortSignal.abort() },
      { signal: undefined, token: undefined, deadline: undefined },
      { deadline: 0 },
      { deadline: Infinity },
    ];
    for (const each of options) expect(checkAcquire(each)).toBe(each);
  });
});

describe("checkResources", () => {
  test.each([
    ["one", "a", ["a"]],
    ["several, in their order", ["b", "a"], ["b", "a"]],
    ["each once", ["a", "b", "a"], ["a", "b"]],
    ["a long name", "x".repeat(1_024), ["x".repeat(1_024)]],
    ["a hundred", Array.from({ length: 100 }, (_, index) => `r${index}`), expect.any(Array)],
  ])("%s", (_what, given, expected) => {
    expect(checkResources(given)).toEqual(expected);
  });

  test.each<[what: string, value: unknown, type: new () => Error, shown: string]>([
    ["an empty name", "", RangeError, "has 0"],
    ["an empty name among others", ["a", ""], RangeError, "has 0"],
    ["a name that is too long", "x".repeat(1_025), RangeError, "has 1025"],
    ["none", [], RangeError, "got 0"],
    ["too many", Array.from({ length: 101 }, (_, index) => `r${index}`), RangeError, "got 101"],
    ["a number", 42, TypeError, "got number"],
    ["null", null, TypeError, "got null"],
    ["undefined", undefined, TypeError, "is missing"],
    ["a number among names", ["a", 42], TypeError, "got number"],
  ])("refuses %s", (_what, value, type, shown) => {
    expect(() => checkResources(value as string)).toThrow(type);
    expect(() => checkResources(value as string)).toThrow(shown);
  });

  test("does not change its argument", () => {
    const given = Object.freeze(["a", "a"]);
    checkResources(given);
    expect(given).toEqual(["a", "a"]);
  });
});

describe("Redlock", () => {
  test.each<[what: string, endpoints: unknown, type: new () => Error, message: RegExp]>([
    ["no endpoints", undefined, TypeError, /endpoints/],
    ["an empty list", [], TypeError, /endpoints/],
    ["a single one that is no list", memoryEndpoint(), TypeError, /endpoints/],
    ["two of one name", [memoryEndpoint(), memoryEndpoint()], RangeError, /memory/],
    ["a url that is none", [{ url: "redis", token: "t" }], TypeError, /url/],
    ["a url with credentials", [{ url: "https://me:pw@host", token: "t" }], TypeError, /credentials/],
    ["no token", [{ url: "https://host" }], TypeError, /token/],
    ["a token with a line break", [{ url: "https://host", token: "a\nb" }], TypeError, /token/],
    ["a dialect that is none", [{ url: "https://host", token: "t", dialect: "x" }], TypeError, /dialect/],
  ])("refuses %s", (_what, endpoints, type, message) => {
    const attempt = () => new Redlock({ endpoints: endpoints as never });
    expect(attempt).toThrow(type);
    expect(attempt).toThrow(message);
  });

  test("checks its defaults at once, without the secrets in its messages", () => {
    const endpoints = [{ url: "https://host", token: "secret token" }];
    expect(() => new Redlock({ endpoints })).toThrow(/host/);
    expect(() => new Redlock({ endpoints })).not.toThrow(/secret/);
    expect(() => new Redlock({ endpoints: [memoryEndpoint()], ttl: 1 })).toThrow(RangeError);
  });
});

describe("checkBackoff", () => {
  test.each([
    [{ min: 0 }, RangeError, /backoff\.min.*0/],
    [{ min: NaN }, RangeError, /backoff\.min.*NaN/],
    [{ min: "5" }, TypeError, /backoff\.min.*"5"/],
    [{ max: 0 }, RangeError, /backoff\.max.*0/],
    [{ min: 50, max: 49 }, RangeError, /backoff\.max.*49/],
    [100, TypeError, /backoff.*number/],
    ["fast", TypeError, /backoff.*"fast"/],
    [true, TypeError, /backoff.*boolean/],
  ])("refuses %j", (backoff, type, message) => {
    expect(() => checkBackoff(backoff as Backoff)).toThrow(type);
    expect(() => checkBackoff(backoff as Backoff)).toThrow(message);
  });

  test("returns valid input unchanged", () => {
    for (const backoff of [{}, { min: 1 }, { max: 1 }, { min: 7, max: 7 }, () => 5]) {
      expect(checkBackoff(backoff)).toBe(backoff);
    }
  });
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
