import { describe, expect, test, vi } from "vitest";
import { resolveSettings } from "../../src/lock/options.ts";
import { systemRuntime } from "../../src/runtime.ts";
import { runInBackground } from "../../src/wait-until.ts";
import { forbidUnhandledRejections } from "../support/unhandled.ts";

const context = { endpoints: [], runtime: systemRuntime };

describe("runInBackground", () => {
  forbidUnhandledRejections();

  test("accepts a waitUntil that is asynchronous and rejects, and work that fails", async () => {
    const failing = () => Promise.reject(new Error("no"));
    const hostile = () => ({
      // biome-ignore lint/suspicious/noThenProperty: what a platform may return
      get then() {
        throw new Error("hostile");
      },
    });
    for (const waitUntil of [failing, hostile, { waitUntil: failing }, () => undefined]) {
      const settings = resolveSettings(context, { waitUntil: waitUntil as () => void });
      expect(runInBackground(settings, Promise.resolve())).toBe(true);
      expect(runInBackground(settings, Promise.reject(new Error("failed work")))).toBe(true);
    }
  });

  test("passes waitUntil a promise that never rejects", async () => {
    const background: Promise<unknown>[] = [];
    const settings = resolveSettings(context, { waitUntil: (work) => background.push(work) });
    expect(runInBackground(settings, Promise.reject(new Error("failed work")))).toBe(true);
    await expect(background[0]).resolves.toBe(undefined);
  });

  const work = Promise.resolve();

  test("returns false without waitUntil", () => {
    expect(runInBackground(resolveSettings(context), work)).toBe(false);
  });

  test("calls a waitUntil function with the work as its only argument", () => {
    const waitUntil = vi.fn();
    expect(runInBackground(resolveSettings(context, { waitUntil }), work)).toBe(true);
    expect(waitUntil.mock.calls).toEqual([[work]]);
  });

  test("calls the waitUntil method of a context on that context", () => {
    const received: unknown[] = [];
    class Context {
      readonly #received = received; // unreachable for an unbound call
      waitUntil(promise: Promise<unknown>): void {
        this.#received.push(promise);
      }
    }
    expect(runInBackground(resolveSettings(context, { waitUntil: new Context() }), work)).toBe(true);
    expect(received).toEqual([work]);
  });

  test("returns false when waitUntil throws: the caller then awaits the work, and loses no lock", () => {
    const waitUntil = () => {
      throw new TypeError("Illegal invocation");
    };
    expect(runInBackground(resolveSettings(context, { waitUntil }), work)).toBe(false);
  });
});
