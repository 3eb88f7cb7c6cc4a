import { vi } from "vitest";

/** What a promise comes to, as a value: for tests that want to look at failures one by one. */
export async function outcomeOf<Value>(
  promise: Promise<Value>,
): Promise<{ value: Value; error?: undefined } | { error: unknown; value?: undefined }> {
  try {
    return { value: await promise };
  } catch (error) {
    return { error };
  }
}

/** Waits until `condition` holds; fails after 15 s. */
export function until(condition: () => boolean | Promise<boolean>): Promise<unknown> {
  return vi.waitUntil(condition, { interval: 5, timeout: 15_000 });
}

let keys = 0;

/** A key that no other test of this process uses. */
export function freshKey(): string {
  keys += 1;
  return `key-${keys}`;
}
