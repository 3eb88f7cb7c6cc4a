import { expect, test } from "vitest";
import { holderText, parseHolder } from "../../../src/lock/note.ts";
import { randomToken, systemRuntime } from "../../../src/runtime/runtime.ts";

const nonce = randomToken(systemRuntime);
const other = randomToken(systemRuntime);

test.each([undefined, "a", " ", " a  b ", "\n", "a\n\u0000b\r\n", '"🐘" {b}', other, `${other} a`])(
  "a holder with the note %j is read as it was written",
  (note) => {
    expect(parseHolder(holderText({ nonce, note }))).toEqual({ nonce, note });
  },
);

test("without a note the value is the nonce", () => {
  expect(holderText({ nonce })).toBe(nonce);
});

test.each([
  "",
  "somebody else's value",
  `${nonce} `,
  `${nonce}owner`,
  `${nonce}  `.slice(1),
  ` ${nonce} a`,
  `${nonce.toUpperCase()} a`,
  `${nonce}0 a`,
])("%j is a nonce as a whole", (text) => {
  expect(parseHolder(text)).toEqual({ nonce: text, note: undefined });
});
