import { describe, expect, it } from "vitest";
import { type FaultPlan, type FaultRule, Faults } from "../../src/faults/faults.ts";

const nothing: FaultPlan = {
  down: false,
  dropRequest: false,
  dropReply: false,
  reset: false,
  delay: 0,
  delayReply: 0,
  reorder: false,
  duplicate: false,
  status: undefined,
  html: false,
};

describe("Faults", () => {
  it("combines all matching rules: delays add up, the first status is used", () => {
    const faults = new Faults(
      [
        { fault: "delay", ms: 5 },
        { fault: "delay", ms: 7 },
        { fault: "status", status: 429 },
        { fault: "status", status: 503, html: true },
        { fault: "duplicate", command: "GET" },
        { fault: "delay-reply", ms: [10, 30] },
      ],
      () => 0.25,
    );
    expect(faults.plan("SET")).toEqual({ ...nothing, delay: 12, delayReply: 15, status: 429 });
    expect(new Faults([{ fault: "delay", reset: true }]).plan("SET")).toEqual({ ...nothing, delay: 1_000 });
  });

  it("plans streams and messages apart from requests", () => {
    const draws = [0.5, 0.5];
    const faults = new Faults(
      [
        { fault: "cut-stream", ms: [100, 300], times: 1, command: "subscribe" },
        { fault: "cut-stream", ms: 50, reset: true, times: 1, command: "PSUBSCRIBE" },
        { fault: "silent-stream", times: 1 },
        { fault: "drop-message", times: 1 },
        { fault: "duplicate-message", times: 1 },
        { fault: "delay-message", times: 1 },
      ],
      () => draws.shift()!,
    );
    expect(faults.plan("SUBSCRIBE")).toEqual(nothing);
    expect(faults.planStream("SUBSCRIBE")).toEqual({ cutAfter: 200, reset: false, silent: true });
    expect(faults.planStream("PSUBSCRIBE")).toEqual({ cutAfter: 50, reset: true, silent: false });
    expect(faults.planMessage("SUBSCRIBE")).toEqual({ drop: true, duplicate: true, delay: 1000 });
    expect(faults.list()).toEqual([]);
    expect(faults.planStream("SUBSCRIBE")).toEqual({ cutAfter: undefined, reset: false, silent: false });
    expect(faults.planMessage("SUBSCRIBE")).toEqual({ drop: false, duplicate: false, delay: 0 });
  });

  it("applies only to the command that a rule names, in any case", () => {
    const faults = new Faults([{ fault: "down", command: "set" }]);
    expect(faults.plan("SET").down).toBe(true);
    expect(faults.plan("sEt").down).toBe(true);
    expect(faults.plan("SETNX").down).toBe(false);
  });

  it("removes a rule after its times, and lists the remaining ones", () => {
    const faults = new Faults([{ fault: "down", times: 2, command: "SET" }]);
    faults.plan("GET");
    expect(faults.list()).toEqual([{ fault: "down", times: 2, command: "SET" }]);
    expect(faults.plan("SET").down).toBe(true);
    expect(JSON.parse(JSON.stringify(faults.list()))).toEqual([{ fault: "down", times: 1, command: "SET" }]);
    expect(faults.plan("SET").down).toBe(true);
    expect(faults.list()).toEqual([]);
    expect(faults.plan("SET").down).toBe(false);
  });

  it("applies by probability; a miss does not use up `times`", () => {
    const draws = [0.5, 0.49];
    const faults = new Faults([{ fault: "down", probability: 0.5, times: 1 }], () => draws.shift()!);
    expect(faults.plan("SET").down).toBe(false);
    expect(faults.plan("SET").down).toBe(true);
    expect(new Faults([{ fault: "down", probability: 0 }], () => 0).plan("SET").down).toBe(false);
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
    expect(faults.plan("SET")).toEqual({ ...nothing, down: true, delay: 5 });
  });

  it("adds, removes and clears rules; later changes of the object have no effect", () => {
    const faults = new Faults();
    const rule = { fault: "down" as const, command: "SET" };
    const remove = faults.add(rule);
    faults.add({ fault: "reorder" });
    rule.command = "GET";
    expect(faults.plan("SET")).toEqual({ ...nothing, down: true, reorder: true });
    remove();
    remove();
    expect(faults.plan("SET")).toEqual({ ...nothing, reorder: true });
    faults.clear();
    expect(faults.plan("SET")).toEqual(nothing);
  });

  it.each<[unknown, typeof TypeError | typeof RangeError, string]>([
    [{ fault: "explode" }, TypeError, '"explode"'],
    [null, TypeError, "null"],
    [{ fault: "down", command: "" }, TypeError, '""'],
    [{ fault: "down", probability: 1.5 }, RangeError, "1.5"],
    [{ fault: "down", probability: "1" }, TypeError, '"1"'],
    [{ fault: "down", probability: Number.NaN }, TypeError, "probability"],
    [{ fault: "down", times: 1.5 }, RangeError, "1.5"],
    [{ fault: "delay", ms: -1 }, RangeError, "-1"],
    [{ fault: "delay", ms: [5] }, TypeError, "[5]"],
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
