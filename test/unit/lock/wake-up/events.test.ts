import { describe, expect, it } from "vitest";
import { lineSplitter, parseEvent } from "../../../../src/lock/wake-up/events.ts";

describe("parseEvent", () => {
  it.each([
    ["data: subscribe,redlock:wake-lock:{a},1", { kind: "subscribed" }],
    ["data:subscribe,a,1", { kind: "subscribed" }],
    ["data: message,a,1", { kind: "released", waiters: 1 }],
    ["data: message,a,9999999", { kind: "released", waiters: 9_999_999 }],
    ["data: message,a,5:w", { kind: "released", waiters: 5, name: "w" }],
    ["data: message,a,0:all", { kind: "released", waiters: 0, name: "all" }],
    ["data: message,a,0:t1:20", { kind: "released", waiters: 0, name: "t1", streams: 20 }],
  ])("%s", (line, event) => {
    expect(parseEvent(line)).toEqual(event);
  });

  it.each([
    ["no number", "data: message,a,x"],
    ["zero", "data: message,a,0"],
    ["no name", "data: message,a,0:"],
    ["a name of other characters", "data: message,a,1:a b"],
    ["a name that is too long", `data: message,a,1:${"a".repeat(65)}`],
    ["a number without a name", "data: message,a,0::20"],
    ["more streams than any database has", "data: message,a,0:t1:10000000"],
    ["a negative number", "data: message,a,-1"],
    ["more than any database has", "data: message,a,10000000"],
    ["a fraction", "data: message,a,1.5"],
    ["more parts", "data: message,a,b,1"],
    ["a line of several", " data: message,a,1"],
    ["another event", "data: pmessage,p,a,1"],
    ["a comment", ": data: message,a,1"],
    ["another field", "event: message,a,1"],
    ["an end", "data: unsubscribe,a,0"],
    ["another line's end", "data: message,a,1\u2028"],
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
