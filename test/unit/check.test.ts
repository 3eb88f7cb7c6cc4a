import { describe, expect, test } from "vitest";
import {
  checkInteger,
  checkNumber,
  checkOptions,
  checkText,
  checkType,
  later,
  milliseconds,
  type OptionHints,
  oneOf,
  type Schema,
  typed,
} from "../../src/check/check.ts";
import { nameHere } from "../../src/check/foreign-options.ts";

type Expected = ErrorConstructor | undefined;
test.each<[value: unknown, number?: Expected, integer?: Expected]>([
  [2],
  [5],
  [2.5, undefined, RangeError],
  [1.999, RangeError, RangeError],
  [5.001, RangeError, RangeError],
  [NaN, RangeError, RangeError],
  [Infinity, RangeError, RangeError],
  ["3", TypeError, TypeError],
  [3n, TypeError, TypeError],
])("a number, or an integer, between 2 and 5: %s", (value, number, integer) => {
  for (const [check, error] of [
    [checkNumber, number],
    [checkInteger, integer],
  ] as const) {
    const checked = () => check("n", value as number, 2, 5);
    if (error) expect(checked).toThrow(error);
    else expect(checked()).toBe(value);
  }
});

test("a number may be infinite, if that is its bound", () => {
  expect(checkNumber("n", Infinity, 0, Infinity)).toBe(Infinity);
  expect(() => checkInteger("n", Infinity, 0, Infinity)).toThrow(RangeError);
});

test.each<[value: unknown, type: string, message: string]>([
  [undefined, "object", "it is missing: it must be an object"],
  [null, "object", "it must be an object, got null"],
  ['"', "number", 'it must be a number, got "\\""'],
  ["x".repeat(81), "number", `it must be a number, got "${"x".repeat(80)}"`],
  [7, "string", "it must be a string, got number"],
  [new Date(), "string", "it must be a string, got Date"],
  [[], "string", "it must be a string, got an empty array"],
  [Object.create(null), "string", "it must be a string, got object"],
])("%s is no %s", (value, type, message) => {
  expect(() => checkType("it", value, type)).toThrow(new TypeError(message));
});

test.each(["\ud83d", "a\udd12b", "\udd12\ud83d"])("half of a surrogate pair is no text: %j", (text) => {
  expect(() => checkText("name", text)).toThrow("name has half of a surrogate pair in it");
});

interface Given {
  readonly ttl?: number;
  readonly wait?: number;
  readonly fencing?: boolean;
  readonly fenceRetention?: number;
  readonly ID?: string;
  readonly mode?: string;
}

describe("checkOptions", () => {
  const schema: Schema<Given> = {
    ttl: milliseconds(10, 100),
    wait: later,
    fencing: typed("boolean"),
    fenceRetention: later,
    ID: typed("string"),
    mode: oneOf("skip", "coalesce", "cancel"),
  };
  const hints: OptionHints = { required: ["ttl"], usual: "ttl", elsewhere: { owner: "ReentrantLock" } };
  const names = "ttl, wait, fencing, fenceRetention, ID, mode";
  const check = (options: unknown, given?: OptionHints) =>
    checkOptions("a lock", options as Given, schema, given);

  test("returns the options; one that is undefined is absent, also where it is unknown", () => {
    const options = { ttl: 10, wait: "whatever", mode: "skip", fencing: undefined, retries: undefined };
    expect(check(options, hints)).toBe(options);
    expect(check({})).toEqual({});
  });

  test.each<[options: unknown, message: string, hints?: OptionHints]>([
    [{ ttl: undefined }, "ttl (ms) is missing: it must be a number", hints],
    [{ owner: "a" }, 'a lock has no option "owner"; it belongs to ReentrantLock', hints],
    [{ owner: "a" }, `a lock has no option "owner"; there are ${names}`],
    // Before any value is checked: it may be what is meant.
    [{ tl: 50 }, 'a lock has no option "tl"; did you mean ttl?', hints],
    [50, "options must be an object; did you mean { ttl: 50 }?", hints],
    [[], "a lock needs an object of options", hints],
    // Not shown: instead of the options it may be a secret.
    ["the secret", "a lock needs an object of options", hints],
    [typed, "a lock needs an object of options before the function", hints],
  ])("refuses %o", (options, message, given) => {
    expect(() => check(options, given)).toThrow(new TypeError(message));
  });

  test.each([
    ["a letter more", "ttll", "ttl"],
    ["a letter more at the beginning", "await", "wait"],
    ["a letter less", "tl", "ttl"],
    ["another letter", "tll", "ttl"],
    ["two letters exchanged", "wiat", "wait"],
    ["other cases", "TTL", "ttl"],
    ["what other packages call it", "duration", "ttl"],
    ["a word in front", "lockTTL", "ttl"],
    ["the first four letters, and the nearest in length", "fence", "fencing"],
    ["the first four letters, and the nearest in length again", "fenceRetentions", "fenceRetention"],
  ])("suggests a name for %s", (_, name, near) => {
    const error = new TypeError(`a lock has no option "${name}"; did you mean ${near}?`);
    expect(() => check({ ttl: 50, [name]: 1 })).toThrow(error);
  });

  test.each(["fen", "wiax", "wxiy", "tww", "ttlxy", "lt", "toString", "__proto"])(
    "lists the names where none is near: %s",
    (name) => {
      const error = new TypeError(`a lock has no option "${name}"; there are ${names}`);
      expect(() => check({ [name]: 1 }, hints)).toThrow(error);
    },
  );
});

test.each([
  ["expiresIn", "ttl wait", "ttl"],
  ["lease", "ttl wait", "ttl"],
  [
    "ttl",
    "retention lease",
    "retention, how long the result is kept, or lease, how long a run's claim outlives its process",
  ],
  ["retryCount", "ttl wait", "wait, a time in ms"],
  ["maxRetries", "wait maxAttempts", "maxAttempts"],
  ["watchdogTimeout", "autoExtend", "autoExtend, true or false: it needs no time"],
  ["capacity", "maxSize", "maxSize"],
  ["onError", "onEvent onFailed", "onFailed"],
  ["colour", "ttl wait", undefined],
])("what other packages call %s is, among %s, %s", (given, names, here) => {
  expect(nameHere(given, names.split(" "))).toBe(here);
});
