import { describe, expect, test } from "vitest";
import { dialectOf, withoutSecrets } from "../../../src/endpoints/endpoint.ts";

describe("dialectOf", () => {
  test.each([
    ["eu1-fine-cat-1.upstash.io", "upstash"],
    ["eu1-fine-cat-1.upstash.io:443", "upstash"],
    ["eu1-fine-cat-1.upstash.io:x", "redis"],
    ["eu1.upstash.io.example.com", "redis"],
    ["eu1.upstash.io:443.example.com", "redis"],
    ["notupstash.io", "redis"],
    ["eu1-upstash-io", "redis"],
    ["localhost:8080", "redis"],
  ])("of %s is %s", (host, dialect) => {
    expect(dialectOf(host)).toBe(dialect);
  });
});

describe("withoutSecrets", () => {
  test("replaces every occurrence of a secret of 8 characters or more", () => {
    const secrets = ["long-token", "8-letter", "7-chars", 12_345_678];
    const text = "long-token, 8-letter 7-chars 12345678 long-token";
    expect(withoutSecrets(text, secrets)).toBe("…, … 7-chars 12345678 …");
  });

  test.each([
    ["ERR unknown command 'X', with args beginning with: 'a'", "ERR unknown command 'X'"],
    ["ERR failed with args beginning with: 'a'", "ERR failed"],
    ["ERR failed, command was: [SET]", "ERR failed"],
    ['ERR failed at "a"', "ERR failed at "],
    ["ERR failed [1]", "ERR failed "],
    ["ERR failed {1}", "ERR failed "],
    ["ERR failed", "ERR failed"],
    ["", ""],
  ])("ends where a command or JSON begins: %s", (text, said) => {
    expect(withoutSecrets(text, [])).toBe(said);
  });

  test("has at most 200 characters, and no part of a secret at the end", () => {
    expect(withoutSecrets("x".repeat(300), [])).toBe("x".repeat(200));
    expect(withoutSecrets(`${"x".repeat(196)}secret-token`, ["secret-token"])).toBe(`${"x".repeat(196)}…`);
  });

  test("recognises a secret although the text breaks off within it", () => {
    expect(withoutSecrets('ERR for a"secret-b', ['a"secret-b'])).toBe("ERR for …");
  });
});
