import { describe, expect, test } from "vitest";
import { hashKey } from "../../../src/idempotency/digest.ts";
import {
  Idempotency,
  type IdempotencyOptions,
  optionNames,
  resolveIdempotency,
} from "../../../src/idempotency/idempotency.ts";
import { forgetKey, inspectKey } from "../../../src/idempotency/index.ts";
import { clientStateOf, type LockOptions } from "../../../src/lock/options.ts";
import { maxTimerDelay, systemRuntime } from "../../../src/runtime.ts";
import { rejection } from "../../support/outcomes.ts";
import { until } from "../../support/until.ts";
import { virtualWorld } from "../../support/virtual-client.ts";
import { textsOf } from "../../support/virtual-runs.ts";

// The options of runs: defaults, bounds, and what is refused before anything is sent.

const never = () => expect.unreachable("nothing may run");
const any = (value: unknown): never => value as never;

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

  test.each<[keyof IdempotencyOptions, new () => Error, RegExp, ...unknown[]]>([
    ["lease", RangeError, /^lease \(ms\) must be/, 9, 10.5, maxTimerDelay + 1, NaN],
    ["retention", RangeError, /^retention \(ms\) must be/, 29_999, 40_000.5, 2 ** 45 + 1, Infinity],
    ["wait", RangeError, /^wait/, -1],
    ["timeout", RangeError, /^timeout/, 0],
    ["maxHold", RangeError, /^maxHold/, -1],
    ["maxAttempts", RangeError, /^maxAttempts must be/, 0, 1.5, 2 ** 53, Infinity],
    ["maxResult", RangeError, /^maxResult must be/, 999, 1_000.5, 4_000_001],
    ["lease", TypeError, /^lease \(ms\) must be a number/, "30s"],
    ["retention", TypeError, /^retention \(ms\) must be a number/, "1d"],
    ["maxAttempts", TypeError, /^maxAttempts must be a number/, "3"],
    ["maxResult", TypeError, /^maxResult must be a number/, true],
    ["onEvent", TypeError, /^onEvent must be a function/, "log", {}],
  ])("%s is refused with a %o that names it (%s): %s", (name, type, message, ...values) => {
    for (const value of values) {
      expect(() => resolve({ [name]: value })).toThrow(type);
      expect(() => resolve({ [name]: value })).toThrow(message);
    }
  });

  test("a lease may be longer than the client keeps fences", () => {
    expect(resolve({ lease: 30_000 }, { fenceRetention: 15_000 }).lease).toBe(30_000);
  });

  test("of a call win, and undefined leaves those of the instance in place", () => {
    const { redlock } = virtualWorld().client();
    const layers = [
      { lease: 20_000, wait: 5 },
      { lease: undefined, wait: 7 },
    ];
    expect(resolveIdempotency(clientStateOf(redlock), ...layers).settings).toMatchObject({
      ttl: 20_000,
      wait: 7,
    });
  });

  test("that are misspelt are refused, by every function that takes options", async () => {
    const { redlock, links } = virtualWorld().client();
    const idempotency = new Idempotency(redlock);
    const unknown = (name: string, what: string) => new RegExp(`^TypeError: ${what} has no option "${name}"`);
    expect(() => new Idempotency(redlock, any({ leese: 1 }))).toThrow(/^Idempotency has no option "leese"/);
    for (const name of ["scope", "fingerprint", "codec", "signal", "deadline"]) {
      expect(() => new Idempotency(redlock, { [name]: 1 })).toThrow(`no option "${name}"`);
      expect(optionNames).not.toHaveProperty(name);
    }
    expect(String(await rejection(idempotency.run("k", any({ ttl: 1 }), never)))).toMatch(
      unknown("ttl", "run"),
    );
    for (const name of ["lease", "wait", "fingerprint"]) {
      const options = any({ [name]: 1 });
      expect(String(await rejection(inspectKey(idempotency, "k", options)))).toMatch(
        unknown(name, "inspectKey"),
      );
      expect(String(await rejection(forgetKey(idempotency, "k", options)))).toMatch(
        unknown(name, "forgetKey"),
      );
    }
    expect(links.flatMap(({ sent }) => sent)).toEqual([]);
  });
});

describe("an Idempotency", () => {
  test("needs a client, and options that are right, at once", () => {
    const { redlock } = virtualWorld().client();
    for (const client of [undefined, null, {}, { lease: 1_000 }]) {
      expect(() => new Idempotency(any(client))).toThrow(TypeError);
    }
    expect(() => new Idempotency(redlock, any(null))).toThrow(/^Idempotency needs an object/);
    expect(() => new Idempotency(redlock, { maxResult: 1 })).toThrow(RangeError);
    expect(() => new Idempotency(redlock, { lease: 1_000, retention: 1_000 })).not.toThrow();
  });

  test.each<[what: string, message: RegExp, ...given: unknown[]]>([
    ["no handler", /^TypeError: handler is missing: it must be a function/, "k", undefined],
    [
      "a handler that is none",
      /^TypeError: handler must be a function, got Response/,
      "k",
      {},
      new Response(),
    ],
    ["options that are none", /^TypeError: run needs an object of options/, "k", "scope", never],
    [
      "a codec that only encodes",
      /^TypeError: codec\.decode is missing/,
      "k",
      { codec: { encode: never } },
      never,
    ],
    [
      "a codec that only decodes",
      /^TypeError: codec\.encode is missing/,
      "k",
      { codec: { decode: never } },
      never,
    ],
    ["a codec of null", /^TypeError: codec\.encode is missing/, "k", { codec: null }, never],
    ["an empty key", /^RangeError: key must not be empty/, "", never],
    ["a number as key", /^TypeError: key must be a string, got number/, 7, never],
    ["another kind", /^RangeError: kind must be "run", "http" or "flight"/, "k", { kind: "idem" }, never],
    ["a deadline that has passed", /^RangeError: .*deadline/, "k", { deadline: 1 }, never],
    ["a signal that is none", /^TypeError: signal/, "k", { signal: {} }, never],
    ["an empty scope", /^RangeError: scope must have no empty part/, "k", { scope: "" }, never],
  ])("refuses to run with %s, and sends nothing", async (_, message, ...given) => {
    const { redlock, links } = virtualWorld().client();
    const run = new Idempotency(redlock).run as (...args: unknown[]) => Promise<unknown>;
    const error = await rejection(run.apply(new Idempotency(redlock), given));
    expect(String(error)).toMatch(message);
    expect(links.flatMap(({ sent }) => sent)).toEqual([]);
  });

  test("keeps keys of different scopes and kinds apart", async () => {
    const world = virtualWorld({ count: 1 });
    const idempotency = new Idempotency(world.client().redlock);
    const options = [{}, { scope: "a" }, { scope: ["a", "b"] }, any({ kind: "http" })];
    for (const [index, each] of options.entries()) {
      expect((await idempotency.run("k", each, () => index)).value).toBe(index);
      const { scope, kind } = { kind: undefined, ...(each as { scope?: string[] }) };
      expect((await inspectKey(idempotency, "k", { scope, kind })).state).toBe("complete");
    }
    expect(world.endpoints[0]!.engine.execute(["DBSIZE"])).toBe(4);
    expect(await forgetKey(idempotency, "k")).toBe(true);
    expect((await inspectKey(idempotency, "k")).state).toBe("none");
    expect((await inspectKey(idempotency, "k", { kind: "http" })).state).toBe("complete");
    expect(await forgetKey(idempotency, "k", { kind: "http" })).toBe(true);
    expect(world.endpoints[0]!.engine.execute(["DBSIZE"])).toBe(2);
    expect(await inspectKey(idempotency, "k", any({ kind: "x" })).catch(String)).toMatch(/^RangeError: kind/);
  });

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
      await idempotency.run("k", { scope }, () => 1);
      const hash = await hashKey(parts, "k", "run");
      expect((engine.execute(["KEYS", "*"]) as string[]).sort()).toEqual([
        `shop:idem:{${hash}}`,
        `shop:tries:{${hash}}`,
      ]);
    }
  });

  test("computes fingerprint and scope before the handler can change what they are made of", async () => {
    const world = virtualWorld({ count: 1 });
    const idempotency = new Idempotency(world.client().redlock);
    const fingerprint = Uint8Array.of(1);
    const handler = () => {
      fingerprint[0] = 2;
      return 1;
    };
    await idempotency.run("k", { fingerprint }, handler);
    expect((await idempotency.run("k", { fingerprint: Uint8Array.of(1) }, never)).status).toBe("replayed");
    expect(textsOf(world)).toHaveLength(1);
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
