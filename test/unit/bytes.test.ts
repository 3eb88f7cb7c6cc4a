import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { concatBytes, sha256Hex, toHex, unshared } from "../../src/bytes.ts";

test("concatBytes joins arrays in their order, also parts of larger buffers", () => {
  const part = Uint8Array.of(9, 3, 4, 9).subarray(1, 3);
  expect(concatBytes([Uint8Array.of(1, 2), part, new Uint8Array(), Uint8Array.of(5)])).toEqual(
    Uint8Array.of(1, 2, 3, 4, 5),
  );
  expect(concatBytes([])).toEqual(new Uint8Array());
  expect(concatBytes([part])).not.toBe(part);
});

test("toHex gives two lower-case digits for each byte", () => {
  const all = Uint8Array.from({ length: 256 }, (_, byte) => byte);
  expect(toHex(all)).toBe(Buffer.from(all).toString("hex"));
  expect(toHex(new Uint8Array())).toBe("");
});

test("sha256Hex is SHA-256", async () => {
  for (const text of ["", "abc", "Zażółć"]) {
    const bytes = new TextEncoder().encode(text);
    expect(await sha256Hex(bytes)).toBe(createHash("sha256").update(text).digest("hex"));
  }
  expect(await sha256Hex(Uint8Array.of(0, 97, 0).subarray(1, 2))).toBe(await sha256Hex(Uint8Array.of(97)));
});

test("unshared copies nothing", () => {
  const bytes = Uint8Array.of(1);
  expect(unshared(bytes)).toBe(bytes);
});
