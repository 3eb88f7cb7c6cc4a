import { inspect } from "node:util";
import { expect } from "vitest";
import { isRedlockError } from "../../src/index.ts";

/** Everything that an error or an event contains, causes and votes included. */
function everythingOf(emitted: unknown): string {
  return inspect(emitted, { depth: 12, maxStringLength: null, maxArrayLength: null });
}

/** Fails when an event or an error contains a secret. */
export function expectNoSecret(emitted: readonly unknown[], secrets: Iterable<string>): void {
  const text = everythingOf(emitted);
  for (const secret of secrets) expect(text.includes(secret), `${secret} in ${text}`).toBe(false);
}

/** Fails unless it is an error of this package, with one of the codes. */
export function expectTyped(error: unknown, ...codes: string[]): void {
  expect(isRedlockError(error), everythingOf(error)).toBe(true);
  expect(codes, everythingOf(error)).toContain((error as { code: string }).code);
}
