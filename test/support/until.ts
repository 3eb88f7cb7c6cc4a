import { setTimeout as sleep } from "node:timers/promises";

/**
 * Polls a condition every 5 ms until it holds, and resolves with its value.
 *
 * @param look returns something truthy once the condition holds
 * @param what names the condition in the error
 * @param within ms after which it rejects with an error. Default 15 000
 * @example
 * await until(() => server.requests.length === 3, "three requests");
 */
export async function until<Found>(
  look: () => Found | Promise<Found>,
  what = "a condition",
  within = 15_000,
): Promise<NonNullable<Found>> {
  const deadline = Date.now() + within;
  for (;;) {
    const found = await look();
    if (found) return found;
    if (Date.now() > deadline) throw new Error(`waited ${within} ms for ${what}, without success`);
    await sleep(5);
  }
}
