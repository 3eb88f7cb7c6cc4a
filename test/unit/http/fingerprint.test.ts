import { describe, expect, test } from "vitest";
import { requestFingerprint } from "../../../src/http/fingerprint.ts";
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
    // Each number is written in several ways, and one that JavaScript would round does not make the rest count as bytes.
    ["[0, 0.50, 100, 1e21, -1.5]", "[0.0, 5e-1, 1E+2, 1000000000000000000000.0, -1.50]"],
    ['{"id":9007199254740993,"at":1}', '{"at":1e400, "id":9007199254740993}', ["at"]],
    ['{"a":1,"b":[{"a":1},{"a":"b:"}]}', '{"b":[{"a":1},{"a":"b:"}],"a":1}'],
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
    // Numbers that JavaScript reads as one, and texts that look like what stands for them.
    ["9007199254740993", "9007199254740992"],
    ['{"a":[1e400]}', '{"a":[1e401]}'],
    ["-0", "0"],
    ["-0.0", "0.0"],
    ["1e-400", "0"],
    ["0.1000000000000000055", "0.1"],
    ["9007199254740993", '"\\u00009007199254740993"'],
    ['"\\u0000-0"', '"\\u0000\\u0000-0"'],
    // Readers differ in which of two members they take.
    ['{"cents":1,"cents":100}', '{"cents":100}'],
    ['[{"a":{"b":1,"\\u0062":2}}]', '[{"a":{"b":2}}]'],
    ['{"__proto__":1,"__proto__":2}', '{"__proto__":2}'],
    ['{"__proto__":1}', "{}"],
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
    expect(() => jsonFingerprint({ include: [] } as never)).toThrow(/has no option "include"/);
  });
});

test.each([
  ["--a", 70, true],
  ["--a", 71, false],
  // An open quotation mark, whose search would be slow in such a body.
  ['"--', 70, false],
])("a form's boundary %s… of %i characters is left out: %s", (start, length, isLeftOut) => {
  const takenWith = (end: string) => {
    const boundary = start.padEnd(length - 1, "-") + end;
    const headers = { "content-type": `multipart/form-data; boundary=${boundary}` };
    const body = bytes(`--${boundary}\r\n\r\n1\r\n--${boundary}--`);
    return requestFingerprint(new Request("https://a.example/", { method: "POST", headers }), body);
  };
  expect(String(takenWith("x")) === String(takenWith("y"))).toBe(isLeftOut);
});
