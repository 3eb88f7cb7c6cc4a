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

/** What a check returns, or the name of the error that it throws. */
function outcome(check: () => unknown): unknown {
  try {
    return check();
  } catch (error) {
    return (error as Error).name;
  }
}

describe("checkNumber and checkInteger", () => {
  test.each<[value: unknown, number: unknown, integer: unknown]>([
    [2, 2, 2],
    [5, 5, 5],
    [2.5, 2.5, "RangeError"],
    [1, "RangeError", "RangeError"],
    [1.999, "RangeError", "RangeError"],
    [5.001, "RangeError", "RangeError"],
    [6, "RangeError", "RangeError"],
    [NaN, "RangeError", "RangeError"],
    [Infinity, "RangeError", "RangeError"],
    ["3", "TypeError", "TypeError"],
    [3n, "TypeError", "TypeError"],
    [undefined, "TypeError", "TypeError"],
  ])("of %s between 2 and 5", (value, number, integer) => {
    expect(outcome(() => checkNumber("n", value as number, 2, 5))).toBe(number);
    expect(outcome(() => checkInteger("n", value as number, 2, 5))).toBe(integer);
  });

  test("accept Infinity where it is a bound, but as a number only", () => {
    expect(checkNumber("n", Infinity, 0, Infinity)).toBe(Infinity);
    expect(outcome(() => checkInteger("n", Infinity, 0, Infinity))).toBe("RangeError");
  });
});

describe("checkType", () => {
  test("returns a value of the type", () => {
    const given = {};
    expect(checkType("options", given, "object")).toBe(given);
    expect(checkType("name", "", "string")).toBe("");
    expect(checkType("fencing", false, "boolean")).toBe(false);
    expect(checkType("hook", outcome, "function")).toBe(outcome);
  });

  test.each<[value: unknown, type: string, message: string]>([
    [undefined, "object", "it is missing: it must be an object"],
    [undefined, "string", "it is missing: it must be a string"],
    [null, "object", "it must be an object, got null"],
    [null, "string", "it must be a string, got null"],
    ["text", "object", 'it must be an object, got "text"'],
    ['"', "number", 'it must be a number, got "\\""'],
    ["x".repeat(81), "number", `it must be a number, got "${"x".repeat(80)}"`],
    [7, "string", "it must be a string, got number"],
    [true, "function", "it must be a function, got boolean"],
    [new Date(), "string", "it must be a string, got Date"],
    [[], "string", "it must be a string, got an empty array"],
    [Object.create(null), "string", "it must be a string, got object"],
    [{ constructor: undefined }, "string", "it must be a string, got object"],
  ])("refuses %s as %s", (value, type, message) => {
    expect(() => checkType("it", value, type)).toThrow(new TypeError(message));
  });
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
    ["a letter less in the middle", "wat", "wait"],
    ["another letter", "tll", "ttl"],
    ["another letter at the end", "waig", "wait"],
    ["two letters exchanged", "wiat", "wait"],
    ["two letters exchanged at the end", "tlt", "ttl"],
    ["other cases", "TTL", "ttl"],
    ["lower case", "id", "ID"],
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
