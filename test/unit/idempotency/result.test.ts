import { describe, expect, test } from "vitest";
import { encodeResult, json, withinBytes } from "../../../src/idempotency/result.ts";

const never = () => expect.unreachable("nothing is decoded");
const head = { state: "complete", token: "t1", at: 2, fingerprint: "-" } as const;

describe("a result as it is stored", () => {
  test.each<[what: string, encode: () => unknown, decode?: () => number]>([
    [
      "throws",
      () => {
        throw new Error("the codec's own");
      },
    ],
    ["returns no text", () => 7],
    ["returns nothing", () => undefined],
    ["returns half of a surrogate pair", () => "\udfff"],
    ["cannot decode it", () => "text", () => JSON.parse("no JSON")],
  ])("is a reason, and the error, where the codec %s", (_what, encode, decode = never) => {
    const stored = encodeResult({ encode: encode as () => string, decode }, 1);
    expect(stored).toEqual({ unstored: "unserializable", value: 1, error: expect.any(Error) });
  });

  test("is a reason where its own toJSON says that it has none", () => {
    const { unstored, error } = encodeResult(json, { toJSON: () => undefined });
    expect(unstored).toBe("unserializable");
    expect(error).toEqual(new TypeError("the result has no JSON: it is a object"));
  });
});

describe("the record of a result", () => {
  const recordOf = (result: string, most: number) => withinBytes({ ...head, result }, most);
  const tooLarge = { ...head, unstored: "too-large" };

  test.each([
    ["letters", "abc", 3],
    ["letters of two bytes", "üü", 4],
    ["a letter of four bytes", "💶", 4],
    ["what JSON escapes", '"\n\\', 6],
    ["a control character, which takes six", "\u0001", 6],
  ])("has the result as long as it takes no more bytes than allowed: %s", (_what, result, size) => {
    // The rest of the record is ASCII, and JSON puts two quotes around it.
    const whole = "C1 t1 2 - ".length + size + 2;
    expect(recordOf(result, whole)).toEqual({ ...head, result });
    expect(recordOf(result, whole - 1)).toEqual(tooLarge);
    expect(recordOf(result, 1)).toEqual(tooLarge);
  });
});
