import { describe, expect, test } from "vitest";
import { jsonFingerprint } from "../../../src/http/index.ts";

const bytes = (body: string | Uint8Array) =>
  typeof body === "string" ? new TextEncoder().encode(body) : body;

/** The fingerprint of a request with this body, as text. */
async function taken(body: string | Uint8Array, exclude?: string[], path = "/pay"): Promise<string> {
  const request = new Request(`https://a.example${path}`, { method: "POST", body: bytes(body) as BodyInit });
  return new TextDecoder("latin1").decode(
    (await jsonFingerprint({ exclude })(request, bytes(body))) as Uint8Array,
  );
}

const deep = (depth: number) => `${"[".repeat(depth)}${"]".repeat(depth)}`;

describe("jsonFingerprint", () => {
  test.each<[one: string, other: string, exclude?: string[]]>([
    ['{"a":1,"b":[1.0,"x"]}', ' { "b": [1, "\\u0078"],\n "a": 1 }'],
    ['{"a":1,"at":1}', '{"at":2,"a":1}', ["at"]],
    ['{"a":{"at":1,"b":2}}', '{"a":{"b":2}}', ["a.at"]],
  ])("is the same for %s and %s without %j", async (one, other, exclude) => {
    expect(await taken(one, exclude)).toBe(await taken(other, exclude));
  });

  test.each<[one: string | Uint8Array, other: string | Uint8Array]>([
    ['{"a":1}', '{"a":2}'],
    ["[1,2]", "[2,1]"],
    ["", "null"],
    ["a=1&b=2", "b=2&a=1"],
    ["{ no JSON", "{no JSON"],
    ['"\\ud800"', '"\\ud801"'],
    [deep(50_000), ` ${deep(50_000)}`],
    // Not UTF-8: decoded with replacement characters they would be the same.
    [Uint8Array.of(34, 255, 34), Uint8Array.of(34, 254, 34)],
  ])("differs for other bodies, also where they are no JSON: %#", async (one, other) => {
    expect(await taken(one)).not.toBe(await taken(other));
  });

  test("differs for another path or query", async () => {
    const all = await Promise.all(["/pay", "/pay?a", "/refund"].map((path) => taken("{}", [], path)));
    expect(new Set(all).size).toBe(3);
  });

  test("refuses wrong options where it is made", () => {
    expect(() => jsonFingerprint({ exclude: "at" as never })).toThrow(
      new TypeError('exclude must be an array of names, got "at"'),
    );
    expect(() => jsonFingerprint({ include: [] } as never)).toThrow(
      /jsonFingerprint has no option "include"/,
    );
  });
});
