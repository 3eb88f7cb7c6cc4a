import { describe, expect, it } from "vitest";
import { type FaultRule, Faults } from "../../src/faults/faults.ts";

const always = { ms: 1_000 };

describe("Faults", () => {
  it("combines all matching rules: delays add up, of other faults the first rule counts", () => {
    const rules: FaultRule[] = [
      { fault: "delay", ms: 5 },
      { fault: "delay", ms: [10, 20] },
      { fault: "delay-reply", ms: 15 },
      { fault: "status", status: 429 },
      { fault: "status", status: 503 },
    ];
    const { delay, ...others } = new Faults(rules, () => 0.2).plan("SET");
    expect(delay?.ms).toBe(17);
    expect(others).toMatchObject({ "delay-reply": { ms: 15 }, status: { status: 429 } });
    expect(new Faults([{ fault: "delay" }]).plan("SET")).toEqual({ delay: { fault: "delay", ...always } });
  });

  it("plans streams and messages apart from requests", () => {
    const faults = new Faults(
      [
        { fault: "cut-stream", ms: [100, 300], times: 2, command: "subscribe" },
        { fault: "cut-stream", ms: 50, reset: true, times: 1 },
        { fault: "silent-stream", times: 1 },
        { fault: "delay-message", times: 1 },
      ],
      () => 0.5,
    );
    expect(faults.plan("SUBSCRIBE")).toEqual({});
    expect(faults.plan("SUBSCRIBE", "stream")).toMatchObject({
      "cut-stream": { ms: 50, reset: true },
      "silent-stream": {},
    });
    expect(faults.plan("PSUBSCRIBE", "stream")).toEqual({});
    expect(faults.plan("SUBSCRIBE", "stream")).toMatchObject({ "cut-stream": { ms: 200 } });
    expect(faults.plan("SUBSCRIBE", "message")).toMatchObject({ "delay-message": always });
    expect(faults.list()).toEqual([]);
  });

  it("applies only to the command that a rule names, in any case", () => {
    const faults = new Faults([{ fault: "down", command: "set" }]);
    expect(faults.plan("SET").down).toBeDefined();
    expect(faults.plan("sEt").down).toBeDefined();
    expect(faults.plan("SETNX").down).toBeUndefined();
  });

  it("removes a rule after its times, and lists the remaining ones", () => {
    const faults = new Faults([{ fault: "down", times: 2, command: "SET" }]);
    faults.plan("GET");
    expect(faults.list()).toEqual([{ fault: "down", times: 2, command: "SET" }]);
    expect(faults.plan("SET").down).toBeDefined();
    expect(JSON.parse(JSON.stringify(faults.list()))).toEqual([{ fault: "down", times: 1, command: "SET" }]);
    expect(faults.plan("SET").down).toBeDefined();
    expect(faults.list()).toEqual([]);
    expect(faults.plan("SET").down).toBeUndefined();
  });

  it("applies by probability; a miss does not use up `times`", () => {
    const draws = [0.5, 0.49];
    const faults = new Faults([{ fault: "down", probability: 0.5, times: 1 }], () => draws.shift()!);
    expect(faults.plan("SET").down).toBeUndefined();
    expect(faults.plan("SET").down).toBeDefined();
    expect(new Faults([{ fault: "down", probability: 0 }], () => 0).plan("SET").down).toBeUndefined();
  });

  it("draws no random number for a certain rule", () => {
    const faults = new Faults(
      [
        { fault: "down", probability: 1 },
        { fault: "delay", ms: 5 },
      ],
      () => {
        throw new Error("drawn");
      },
    );
    expect(Object.keys(faults.plan("SET"))).toEqual(["down", "delay"]);
  });

  it("adds, removes and clears rules; later changes of the object have no effect", () => {
    const faults = new Faults();
    const rule = { fault: "down" as const, command: "SET" };
    const remove = faults.add(rule);
    faults.add({ fault: "reorder" });
    rule.command = "GET";
    expect(Object.keys(faults.plan("SET"))).toEqual(["down", "reorder"]);
    remove();
    remove();
    expect(Object.keys(faults.plan("SET"))).toEqual(["reorder"]);
    faults.clear();
    expect(faults.plan("SET")).toEqual({});
  });

  it.each<[unknown, typeof TypeError | typeof RangeError, string]>([
    [{ fault: "explode" }, RangeError, '"explode"'],
    [{ probability: 1 }, RangeError, "fault must be"],
    [null, TypeError, "a fault needs an object"],
    [{ fault: "down", command: "" }, RangeError, "command"],
    [{ fault: "down", probability: 1.5 }, RangeError, "1.5"],
    [{ fault: "down", times: 1.5 }, RangeError, "1.5"],
    [{ fault: "delay", ms: -1 }, RangeError, "-1"],
    [{ fault: "delay", ms: [5] }, RangeError, "[5]"],
    [{ fault: "delay", ms: [5, 1] }, RangeError, "[5,1]"],
    [{ fault: "status", status: 200 }, RangeError, "200"],
    [{ fault: "status", html: "yes" }, TypeError, '"yes"'],
    [{ fault: "delay", milliseconds: 5 }, TypeError, '"milliseconds"'],
  ])("refuses %o", (rule, kind, named) => {
    const faults = new Faults();
    const add = () => faults.add(rule as FaultRule);
    expect(add).toThrow(kind);
    expect(add).toThrow(named);
    expect(faults.list()).toEqual([]);
  });
});
