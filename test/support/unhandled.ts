import process from "node:process";
import { afterAll, afterEach, beforeAll, expect } from "vitest";

/** Fails every test of the enclosing `describe` during which a promise rejection is not handled. */
export function forbidUnhandledRejections(): void {
  const unhandled: unknown[] = [];
  const record = (reason: unknown) => unhandled.push(reason);
  beforeAll(() => {
    process.on("unhandledRejection", record);
  });
  afterEach(async () => {
    // Node reports them after the microtasks of a turn.
    await new Promise(setImmediate);
    expect(unhandled.splice(0)).toEqual([]);
  });
  afterAll(() => {
    process.off("unhandledRejection", record);
  });
}
