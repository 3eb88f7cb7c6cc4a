/** Resolves with the value or the error of a promise, so that a test can check failures one by one. */
export async function outcomeOf<Value>(
  promise: Promise<Value>,
): Promise<{ value: Value; error?: undefined } | { error: unknown; value?: undefined }> {
  try {
    return { value: await promise };
  } catch (error) {
    return { error };
  }
}

/** Resolves with the reason of a rejection. Rejects when the promise is fulfilled. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  const outcome = await outcomeOf(promise);
  if ("error" in outcome) return outcome.error;
  throw new Error(`expected a rejection, got ${String(outcome.value)}`);
}

/** Whether a promise is settled after one more turn of the event loop. */
export async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  const settled = Promise.allSettled([promise]).then(() => true);
  const nextTurn = new Promise<boolean>((resolve) => setImmediate(() => resolve(false)));
  return Promise.race([settled, nextTurn]);
}
