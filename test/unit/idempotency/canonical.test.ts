import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { canonicalJson, canonicalKey } from "../../../src/idempotency/canonical.ts";
import { seeded } from "../../support/seeded.ts";

describe("the canonical text of JSON", () => {
  test.each<[what: string, json: string, text: string]>([
    [
      "section 3.2.2",
      String.raw`{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/", "literals": [null, true, false]}`,
      String.raw`{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}`,
    ],
    [
      "section 3.2.3",
      String.raw`{"\u20ac": "Euro Sign", "\r": "Carriage Return", "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One", "\ud83d\ude00": "Emoji: Grinning Face", "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis"}`,
      `{"\\r":"Carriage Return","1":"One","\u0080":"Control","ö":"Latin Small Letter O With Diaeresis","€":"Euro Sign","😀":"Emoji: Grinning Face","\ufb33":"Hebrew Letter Dalet With Dagesh"}`,
    ],
    ["numbers as names", '[56,{"d":true,"10":null,"1":[ ]}]', '[56,{"1":[],"10":null,"d":true}]'],
    ["text that is not normalized", '{"a":"A\\u030a"}', '{"a":"A\u030a"}'],
    ["a prototype's name", '{"b":1,"__proto__":{"a":2}}', '{"__proto__":{"a":2},"b":1}'],
  ])("is that of the RFC for %s", (_what, json, text) => {
    expect(canonicalJson("args", JSON.parse(json))).toBe(text);
  });

  test.each<[what: string, value: unknown, text: string]>([
    ["undefined", { b: undefined, a: [undefined] }, '{"a":[null]}'],
    // biome-ignore lint/suspicious/noSparseArray: it is what is tested
    ["a hole", [, 1], "[null,1]"],
    ["a Date", { at: new Date(0) }, '{"at":"1970-01-01T00:00:00.000Z"}'],
    ["an object of another realm", runInNewContext("({ b: 1, a: [{}] })"), '{"a":[{}],"b":1}'],
    ["the same object twice", ((one) => [one, one])({ a: 1 }), '[{"a":1},{"a":1}]'],
  ])("is what JSON.stringify says of %s", (_what, value, text) => {
    expect(canonicalJson("args", value)).toBe(text);
  });

  const circle: Record<string, unknown> = { list: [] };
  circle.list = [1, circle];
  test.each<[value: unknown, type: new () => Error, where: string]>([
    [undefined, TypeError, "args is undefined"],
    [{ a: Buffer.from("a") }, TypeError, "args.a is of class Buffer"],
    [circle, TypeError, "args.list[1] contains itself"],
    [{ a: ["\ud83d"] }, RangeError, "args.a[0] has half of a surrogate pair"],
    [{ a: { "\udc00": 1 } }, RangeError, "a name in args.a has half of a surrogate pair"],
  ])("is refused for what JSON cannot say: %#", (value, type, where) => {
    const text = () => canonicalJson("args", value);
    expect(text).toThrow(type);
    expect(text).toThrow(where);
  });

  test.each<[exclude: string[], text: string]>([
    [["at"], '{"a.b":1,"items":[{"at":1,"id":2},{"id":3}],"note":{"at":4,"by":{"at":5}}}'],
    [["note.at", "none"], '{"a.b":1,"at":0,"items":[{"at":1,"id":2},{"id":3}],"note":{"by":{"at":5}}}'],
    [["items.at", "note.by.at"], '{"a.b":1,"at":0,"items":[{"id":2},{"id":3}],"note":{"at":4,"by":{}}}'],
    [["items", "note", "a.b"], '{"at":0}'],
  ])("is without %j", (exclude, text) => {
    const value = { note: { by: { at: 5 }, at: 4 }, items: [{ at: 1, id: 2 }, { id: 3 }], at: 0, "a.b": 1 };
    expect(canonicalJson("args", value, exclude)).toBe(text);
  });

  // What stringify and parse give back are the values that JSON has.
  const json = fc.json({ maxDepth: 4 }).map((text) => JSON.parse(text) as unknown);

  test("is the same in any order of members, and can be read back: different values have different texts", () => {
    const order = fc.infiniteStream(fc.nat());
    const same = fc.property(json, order, (value, numbers) => {
      const text = canonicalJson("args", value);
      expect(canonicalJson("args", shuffled(value, numbers))).toBe(text);
      expect(JSON.parse(text)).toEqual(value);
    });
    fc.assert(same, seeded(300));
  });
});

/** With the members in an order drawn. */
function shuffled(value: unknown, numbers: Iterator<number>): unknown {
  if (Array.isArray(value)) return value.map((item) => shuffled(item, numbers));
  if (typeof value !== "object" || value === null) return value;
  const members = Object.entries(value).map(
    ([name, member]) => [numbers.next().value, [name, shuffled(member, numbers)]] as const,
  );
  members.sort(([one], [other]) => one - other);
  return Object.fromEntries(members.map(([, member]) => member));
}

describe("canonicalKey", () => {
  test("is the name, and the hash of the canonical text", async () => {
    const args = { order: "A 17", cents: 500 };
    // printf '{"cents":500,"order":"A 17"}' | sha256sum
    const key = "refund:ec2ee64bb53c2d4d212c9e48bc63328eac75f83c4975b91129dd58f64b2fa63e";
    expect(await canonicalKey("refund", args)).toBe(key);
    expect(await canonicalKey("refund", { ...args, note: "Sorry" }, { exclude: ["note"] })).toBe(key);
    expect(await canonicalKey("refund", { ...args, cents: 501 })).not.toBe(key);
  });

  test("is at most as long as a key may be", async () => {
    expect(await canonicalKey("n".repeat(190), {})).toHaveLength(255);
    await expect(canonicalKey("n".repeat(191), {})).rejects.toThrow(/name must have 1 … 190 characters/);
  });

  test.each<[options: unknown, message: RegExp]>([
    [{ exclude: "note" }, /exclude must be an array/],
    [{ exclude: [7] }, /a name of exclude/],
    [{ omit: ["note"] }, /canonicalKey has no option "omit"/],
  ])("refuses the options %j", async (options, message) => {
    await expect(canonicalKey("refund", {}, options as object)).rejects.toThrow(message);
  });
});
