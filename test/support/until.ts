import { setTimeout as sleep } from "node:timers/promises";

/**
 * Waits for a condition, asking again and again, and resolves with what it came to.
 *
 * @param look answers something truthy once the condition holds
 * @param what names it in the error when it does not hold after `within` ms
 * @example
 * await until(() => server.requests.length === 3, "three requests");
 */
export async function until<Found>(
  look: () => Found | Promise<Found>,
  what = "a condition",
  within = 10_000,
): Promise<NonNullable<Found>> {
  const deadline = Date.now() + within;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`waited ${within} ms in vain for ${what}`);
    await sleep(4);
  }
}

/** Whether a promise has settled by now; it is given one turn of the event loop. */
export async function settled(promise: Promise<unknown>): Promise<boolean> {
  const pending = Symbol("pending");
  const turn = new Promise((resolve) => setImmediate(() => resolve(pending)));
  const outcome = await Promise.race([
    promise.then(
      () => 0,
      () => 0,
    ),
    turn,
  ]);
  return outcome !== pending;
}

/** What a promise is rejected with; fails when it is not. */
export async function rejection(promise: Promise<unknown>): Promise<unknown> {
  let value: unknown;
  try {
    value = await promise;
  } catch (error) {
    return error;
  }
  throw new Error(`expected a rejection, got ${String(value)}`);
}
