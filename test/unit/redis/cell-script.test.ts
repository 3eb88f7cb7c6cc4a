import { createHash } from "node:crypto";
import { describe, expect, test } from "vitest";
import { cellScript } from "../../../src/redis/cell-script.ts";
import { upstashFlag } from "../../../src/redis/script.ts";

const sha1 = (text: string) => createHash("sha1").update(text).digest("hex");

test("upstashFlag is a line of its own", () => {
  expect(upstashFlag).toBe("#!lua flags=allow-key-locking\n");
});

describe("cellScript", () => {
  const { source, sha } = cellScript;

  test("has the hash of the text that each dialect sends", () => {
    expect(sha.redis).toBe(sha1(source));
    expect(sha.upstash).toBe(sha1(upstashFlag + source));
  });

  test("uses only declared keys, and formats no number itself", () => {
    const keys = [...source.matchAll(/redis\.call\("\w+", ([^,)]+)/g)].map(([, key]) => key);
    expect(keys.length).toBeGreaterThan(0);
    for (const key of keys) expect(key).toMatch(/^(unpack\(KEYS|KEYS\[)/);
    expect(source).not.toMatch(/tostring|%d/);
  });
});
