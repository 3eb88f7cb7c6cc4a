import process from "node:process";
import { afterAll, afterEach, beforeAll, expect } from "vitest";

/** Fails every test of the surrounding `describe` during which a rejection is handled by nobody. */
export function forbidUnhandledRejections(): void {
  const unhandled: unknown[] = [];
  const note = (reason: unknown) => unhandled.push(reason);
  beforeAll(() => {
    process.on("unhandledRejection", note);
  });
  afterEach(async () => {
    // They are reported after the microtasks of a turn.
    await new Promise(setImmediate);
    expect(unhandled.splice(0)).toEqual([]);
  });
  afterAll(() => {
    process.off("unhandledRejection", note);
  });
}
