import { inspect } from "node:util";
import { expect } from "vitest";
import { isRedlockError } from "../../../src/index.ts";

/** Everything that an error or an event tells, causes and votes included. */
export function everythingOf(told: unknown): string {
  return inspect(told, { depth: 12, maxStringLength: null, maxArrayLength: null });
}

/** Fails where anything that was told repeats a secret. */
export function expectNoSecret(told: readonly unknown[], secrets: Iterable<string>): void {
  if (told.length === 0) return;
  const text = everythingOf(told);
  for (const secret of secrets) expect(text.includes(secret), `${secret} in ${text}`).toBe(false);
}

/** Fails unless it is an error of this package, and, where codes are given, has one of them. */
export function expectTyped(error: unknown, ...codes: string[]): void {
  expect(isRedlockError(error), everythingOf(error)).toBe(true);
  if (codes.length > 0) expect(codes, everythingOf(error)).toContain((error as { code: string }).code);
}

/** Fails unless it is what misuse is answered with. */
export function expectMisuse(error: unknown): void {
  expect(error instanceof TypeError || error instanceof RangeError, everythingOf(error)).toBe(true);
}
