import { describe, expect, test } from "vitest";
import {
  checkInteger,
  checkNames,
  checkNumber,
  checkScope,
  checkText,
  checkType,
  checkWellFormed,
} from "../../src/check.ts";

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

describe("checkText", () => {
  test("accepts 1 … 255 characters, or as many as it is told", () => {
    for (const text of ["x", "x".repeat(255), "🔒"]) expect(checkText("name", text)).toBe(text);
    expect(checkText("name", "xyz", 3)).toBe("xyz");
    for (const text of ["", "x".repeat(256)]) {
      expect(() => checkText("name", text)).toThrow(
        new RangeError(`name must have 1 … 255 characters, has ${text.length}`),
      );
    }
    expect(() => checkText("name", "wxyz", 3)).toThrow(RangeError);
    expect(() => checkText("name", 5 as unknown as string)).toThrow(TypeError);
  });

  test.each(["\ud83d", "a\udd12b", "\udd12\ud83d"])("refuses half of a surrogate pair: %j", (text) => {
    const half = new RangeError("name has half of a surrogate pair in it");
    expect(() => checkText("name", text)).toThrow(half);
    expect(() => checkWellFormed("name", text)).toThrow(half);
  });
});

describe("checkNames", () => {
  const known = { ttl: 1, wait: 1, fencing: 1, fenceRetention: 1, ID: 1 };

  test("accepts known names, whatever their values", () => {
    expect(() => checkNames("a lock", { ttl: undefined, wait: "x" }, known)).not.toThrow();
    expect(() => checkNames("a lock", {}, known)).not.toThrow();
    expect(() => checkNames("a lock", [], known)).not.toThrow();
  });

  test.each([undefined, null, "the secret", 5])("needs an object, and does not show %s", (options) => {
    expect(() => checkNames("stripe", options as unknown as object, known)).toThrow(
      new TypeError("stripe needs an object of options"),
    );
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
    ["the first four letters, and the nearest in length", "fence", "fencing"],
    ["the first four letters, and the nearest in length again", "fenceRetentions", "fenceRetention"],
  ])("suggests a name for %s", (_, name, near) => {
    expect(() => checkNames("a lock", { ttl: 1, [name]: 1 }, known)).toThrow(
      new TypeError(`a lock has no option "${name}"; did you mean ${near}?`),
    );
  });

  test("accepts an unknown one that is undefined", () => {
    expect(() => checkNames("a lock", { retries: undefined }, known)).not.toThrow();
  });

  test.each(["retries", "fen", "wiax", "wxiy", "tww", "ttlxy", "lt", "toString", "__proto"])(
    "lists the names where none is near: %s",
    (name) => {
      expect(() => checkNames("a lock", { [name]: 1 }, known)).toThrow(
        new TypeError(`a lock has no option "${name}"; there are ttl, wait, fencing, fenceRetention, ID`),
      );
    },
  );
});

describe("checkScope", () => {
  test.each([["a"], [["a"]], [["a", "b"]]])("returns %j", (scope) => {
    expect(checkScope(scope)).toBe(scope);
  });

  test.each<[scope: unknown, error: Error]>([
    ["", new RangeError("scope must have no empty part")],
    [["a", ""], new RangeError("scope must have no empty part")],
    [["a", undefined], new TypeError("a part of scope is missing: it must be a string")],
    [["a", 5], new TypeError("a part of scope must be a string, got number")],
    [[], new TypeError("scope must be a string, or an array of at least one, got an empty array")],
    [{}, new TypeError("scope must be a string, or an array of at least one, got Object")],
    [null, new TypeError("scope must be a string, or an array of at least one, got null")],
    [7, new TypeError("scope must be a string, or an array of at least one, got number")],
  ])("refuses %j", (scope, error) => {
    expect(() => checkScope(scope as string)).toThrow(error);
  });
});
