// Assertions for cases that run where no test framework does.

/** Fails unless `condition` holds. */
export function check(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Error(`expected ${what}`);
}

/** Fails unless both are the same as JSON. */
export function same(actual: unknown, expected: unknown, what: string): void {
  const [left, right] = [JSON.stringify(actual), JSON.stringify(expected)];
  if (left !== right) throw new Error(`${what}: expected ${right}, got ${left}`);
}

/** Resolves with the error that `work` rejects with. */
export async function failureOf(work: Promise<unknown>): Promise<{ code?: string; name?: string } & object> {
  try {
    await work;
  } catch (error) {
    return error as object;
  }
  throw new Error("expected a failure");
}
