import { describe, expect, it } from "vitest";
import { lineSplitter, parseEvent } from "../../../src/wake-up/events.ts";

describe("parseEvent", () => {
  it.each([
    ["data: subscribe,redlock:wake-lock:{a},1", { kind: "subscribed" }],
    ["data:subscribe,a,1", { kind: "subscribed" }],
    ["data: message,a,free", { kind: "message", message: "free" }],
    ["data:message,a,ask:t1", { kind: "message", message: "ask:t1" }],
  ])("%s", (line, event) => {
    expect(parseEvent(line)).toEqual(event);
  });

  it.each([
    ["an empty message", "data: message,a,"],
    ["other characters", "data: message,a,a b"],
    ["a message that is too long", `data: message,a,${"a".repeat(65)}`],
    ["more parts", "data: message,a,b,1"],
    ["a line of several", " data: message,a,1"],
    ["another event", "data: pmessage,p,a,1"],
    ["a comment", ": data: message,a,1"],
    ["another field", "event: message,a,1"],
    ["an end", "data: unsubscribe,a,0"],
    ["another line's end", "data: message,a,free\u2028"],
    ["nothing", ""],
  ])("ignores %s", (_, line) => {
    expect(parseEvent(line)).toBeUndefined();
  });
});

describe("lineSplitter", () => {
  it.each(["\n", "\r\n"])("returns whole lines that end with %j, however the text is cut", (end) => {
    const lines = ["data: subscribe,a,1", "", "data: message,a,2", ""];
    const text = lines.map((line) => line + end).join("");
    for (let size = 1; size <= text.length; size += 1) {
      const split = lineSplitter();
      const found: string[] = [];
      for (let at = 0; at < text.length; at += size) found.push(...split(text.slice(at, at + size)));
      expect(found).toEqual(lines);
    }
  });

  it("does not keep an endless line", () => {
    const split = lineSplitter();
    expect(split("x".repeat(8_192))).toEqual([]);
    expect(() => split("x")).toThrow(RangeError);
    expect(() => lineSplitter()(`${"x".repeat(8_193)}\n`)).toThrow(RangeError);
    expect(lineSplitter()(`${"x".repeat(8_192)}\n`)).toHaveLength(1);
  });
});
