import { setTimeout as later } from "node:timers";
import { setTimeout as sleep } from "node:timers/promises";
import { beyondTests } from "./beyond-tests.ts";

/**
 * Polls a condition every 5 ms until it holds, and resolves with its value. It does not give up: the test's own time-out
 * ends the test. What takes long is named on the console.
 *
 * @param look returns something truthy once the condition holds
 * @param what names the condition
 * @example
 * await until(() => server.requests.length === 3, "three requests");
 */
export async function until<Found>(
  look: () => Found | Promise<Found>,
  what = "a condition",
): Promise<NonNullable<Found>> {
  const notice = later(() => console.warn(`still waiting for ${what}`), 10_000);
  try {
    // What nobody waits for any more must end at some time: files share a process.
    for (const end = performance.now() + beyondTests; performance.now() < end; await sleep(5)) {
      const found = await look();
      if (found) return found;
    }
  } finally {
    clearTimeout(notice);
  }
  throw new Error(`waited in vain for ${what}`);
}
