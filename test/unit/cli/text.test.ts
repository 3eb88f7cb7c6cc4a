import { expect, test } from "vitest";
import { duration, jsonLine, layout, printable } from "../../../src/cli/text.ts";

const odd = "a\u001b[2J\u009b31m\u007f\u0007\u202etxt\u2028\r\nb\u{e0041}\ud83d";

test("printable() escapes what could control a terminal, and nothing else", () => {
  expect(printable(odd)).toBe(
    "a\\u{1b}[2J\\u{9b}31m\\u{7f}\\u{7}\\u{202e}txt\\u{2028}\\u{d}\\u{a}b\\u{e0041}\\u{d83d}",
  );
  expect(printable("größer … 日本 🙂")).toBe("größer … 日本 🙂");
});

test("jsonLine() escapes the same, and parses to the same value", () => {
  const line = jsonLine({ odd });
  expect(line).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/u);
  expect(JSON.parse(line)).toEqual({ odd });
});

test.each([
  [0, "0 ms"],
  [999.4, "999 ms"],
  [59_999, "59.9 s"],
  [3_599_999, "59 min 59 s"],
  [47.5 * 3_600_000, "47 h 30 min"],
  [145 * 3_600_000, "6 d 1 h"],
])("duration(%s) is %s", (ms, text) => {
  expect(duration(ms)).toBe(text);
});

test("layout() puts cells below each other, and breaks the last one between words only", () => {
  const rows = [
    ["a", "long", "x"],
    ["bbb", "c", ""],
    ["\u0007", "", `${"word ".repeat(6)}${"longer".repeat(5)}`],
  ];
  expect(layout(rows)).toEqual([
    "a      long  x",
    "bbb    c",
    `\\u{7}        ${"word ".repeat(6)}${"longer".repeat(5)}`,
  ]);
  expect(layout(rows, 38).slice(2)).toEqual([
    `\\u{7}        ${"word ".repeat(4)}word`,
    "             word",
    `             ${"longer".repeat(5)}`,
  ]);
  // The last cell has room for 24 characters at least.
  expect(layout(rows, 20)).toEqual(layout(rows, 37));
  // Rows stand below each other as far as the next paragraph, which is broken as well.
  expect(layout([["long", "x"], "a word", ["a", "y"]], 5)).toEqual(["long  x", "a", "word", "a  y"]);
});
