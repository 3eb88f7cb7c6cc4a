import { describe, expect, test } from "vitest";
import { OpenExtensions } from "../../../src/lock/open-extensions.ts";

const failing = () => Promise.reject(new Error("no answer"));

describe("OpenExtensions", () => {
  test("remembers the lowest of those that have failed for ever", async () => {
    const open = new OpenExtensions();
    for (const [ttl, lowest] of [
      [900, 900],
      [700, 700],
      [800, 700],
    ] as const) {
      await expect(open.send("a", ttl, failing)).rejects.toThrow("no answer");
      expect(open.lowest("a")).toBe(lowest);
    }
    await open.send("a", 600, async () => "granted");
    expect(open.lowest("a")).toBe(700);
  });
});
