import { checkType } from "./check.ts";

/** Keeps work alive after the response was sent: a function, or the platform's context that has it. */
export type WaitUntil =
  | ((promise: Promise<unknown>) => void)
  | { waitUntil(promise: Promise<unknown>): void };

/** A usable `waitUntil`, or none. */
export function checkWaitUntil(waitUntil: WaitUntil | undefined): WaitUntil | undefined {
  if (waitUntil && typeof waitUntil !== "function") checkType("waitUntil", waitUntil.waitUntil, "function");
  return waitUntil;
}

/**
 * Passes `work` to the platform's `waitUntil`. A failure of the work, or of a `waitUntil` that is asynchronous, is
 * ignored: it must not end the process as an unhandled rejection.
 *
 * @returns whether the platform keeps it alive; if not, the caller has to wait for it
 */
export function runInBackground(
  { waitUntil }: { readonly waitUntil?: WaitUntil | undefined },
  work: Promise<unknown>,
): boolean {
  if (!waitUntil) return false;
  const ignore = (): void => undefined;
  const kept = work.then(ignore, ignore);
  try {
    // Called on its owner: a platform's context refuses to be called unbound.
    const returned: unknown = typeof waitUntil === "function" ? waitUntil(kept) : waitUntil.waitUntil(kept);
    Promise.resolve(returned).catch(ignore);
    return true;
  } catch {
    // The context has ended, or cannot be called like this. No lock may be lost for that: the caller waits itself.
    return false;
  }
}
