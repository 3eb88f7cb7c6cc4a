import { describe, expect, test } from "vitest";
import { stopwatch } from "../../../src/runtime.ts";
import { type SteppingRuntime, steppingRuntime } from "../../support/stepping-runtime.ts";
import { budget, makeValidity } from "../../support/validity.ts";

describe("the remaining time", () => {
  test("uses the faster clock where the other was stopped or set back", async () => {
    for (const disturb of [
      (runtime: SteppingRuntime) => {
        runtime.wallOffset = -60_000;
      },
      (runtime: SteppingRuntime) => {
        runtime.frozen = true;
      },
    ]) {
      const { runtime, validity } = makeValidity();
      disturb(runtime);
      await runtime.advance(500);
      expect(validity.remaining()).toBe(budget - 500);
    }
    const { runtime, validity } = makeValidity();
    runtime.wallOffset = 700;
    expect(validity.remaining()).toBe(budget - 700);
  });
});

describe("signal", () => {
  test.each([
    ["the ttl", {}, undefined, "ttl 1000 ms"],
    // Seconds are the usual mistake.
    ["a short ttl", { ttl: 30 }, undefined, "ttl 30 ms: 30 is 30 ms; did you mean 30_000?"],
    ["the ttl that was requested last", {}, 2_000, "ttl 2000 ms"],
  ])("names what has ended it: %s", async (_what, options, extended, name) => {
    const { runtime, validity } = makeValidity(options);
    if (extended) validity.extend(extended, stopwatch(runtime));
    // As after a freeze, in which every limit passes.
    await runtime.advance(10_000);
    expect(validity.loss?.message).toBe(`the lock on "r" is lost: its validity ended (${name})`);
  });

  test("starts no timer before it is read", () => {
    const { runtime, validity } = makeValidity();
    expect(runtime.pending).toBe(0);
    expect(validity.signal).toBe(validity.signal);
    expect(runtime.pending).toBe(1);
  });

  test("no extension starts one before that, or after a release", async () => {
    const { runtime, validity } = makeValidity();
    validity.extend(1_000, stopwatch(runtime));
    expect(runtime.pending).toBe(0);
    void validity.signal;
    validity.end();
    validity.extend(1_000, stopwatch(runtime));
    expect(runtime.pending).toBe(0);
  });

  test("does not abort early when its timer fires early, and not late either", async () => {
    const runtime = steppingRuntime();
    runtime.early = 0.2;
    const { validity } = makeValidity({ runtime });
    const { signal } = validity;
    await runtime.advance(budget - 1);
    expect(signal.aborted).toBe(false);
    await runtime.advance(2);
    expect(signal.aborted).toBe(true);
  });

  test("is already aborted when it is first read after the end", async () => {
    const { runtime, validity } = makeValidity();
    await runtime.advance(budget);
    expect(validity.signal.aborted).toBe(true);
    expect(runtime.pending).toBe(0);
  });

  test("aborts at once after an extension that took longer than its ttl", async () => {
    const { runtime, validity } = makeValidity();
    const { signal } = validity;
    const sent = stopwatch(runtime);
    await runtime.advance(600);
    validity.extend(500, sent);
    expect(signal.aborted).toBe(true);
  });

  test("aborts once, with the error of the loss", () => {
    const { validity, onLost } = makeValidity();
    const { signal } = validity;
    const loss = validity.lose("its token is gone");
    expect(validity.lose("again")).toBe(loss);
    expect(signal.reason).toBe(loss);
    expect(onLost).toHaveBeenCalledTimes(1);
    expect(validity.remaining()).toBe(0);
  });

  test("does not abort after a release", async () => {
    const { runtime, validity, onLost } = makeValidity();
    const { signal } = validity;
    validity.end();
    expect(runtime.pending).toBe(0);
    await runtime.advance(5_000);
    validity.lose("too late to matter");
    expect(signal.aborted).toBe(false);
    expect(onLost).not.toHaveBeenCalled();
  });
});
