import { describe, expect, test } from "vitest";
import { OpenExtensions } from "../../../src/lock/open-extensions.ts";
import { gate } from "../../support/link.ts";

const failing = () => Promise.reject(new Error("no answer"));

describe("OpenExtensions", () => {
  test("knows none at first, and of another process the lowest of each endpoint", () => {
    expect(new OpenExtensions().lowest("a")).toBe(Infinity);
    const open = new OpenExtensions({ a: 500 });
    expect([open.lowest("a"), open.lowest("b")]).toEqual([500, Infinity]);
  });

  test("remembers each until it is answered, whatever the order of the answers", async () => {
    const open = new OpenExtensions();
    const answers = [gate<string>(), gate<string>(), gate<string>()];
    const ttls = [1_000, 800, 1_000];
    const sending = answers.map(({ passed }, index) => open.send("a", ttls[index]!, () => passed));
    expect(open.lowest("a")).toBe(800);
    expect(open.lowest("b")).toBe(Infinity);
    answers[0]!.open("granted");
    expect(await sending[0]).toBe("granted");
    expect(open.lowest("a")).toBe(800);
    answers[1]!.open("granted");
    await sending[1];
    expect(open.lowest("a")).toBe(1_000);
    answers[2]!.open("lost");
    await sending[2];
    expect(open.lowest("a")).toBe(Infinity);
  });

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
