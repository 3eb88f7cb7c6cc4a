import { onAbort, unlessAborted } from "../../abort.ts";
import { acquire } from "../../lock/acquire.ts";
import { lockProtocol } from "../../lock/fence.ts";
import type { Lock } from "../../lock/lock.ts";
import type { AcquireOptions, Settings } from "../../lock/options.ts";
import type { Next } from "../../quorum/retry.ts";

/**
 * Acquires a lock, and looks again and again whether it is still needed while others hold it: one look at a time. What a
 * look throws is ignored, because the next one will see it.
 *
 * @param isOver whether the lock is not needed any more
 * @returns undefined when it is not needed any more
 * @throws as `acquire`
 */
export async function acquireLooking(
  settings: Settings,
  name: string,
  { signal, deadline, note }: Pick<AcquireOptions, "signal" | "deadline" | "note">,
  isOver: () => Promise<boolean>,
): Promise<Lock | undefined> {
  const controller = new AbortController();
  const giveUp = () => controller.abort(signal?.reason);
  const end = signal && onAbort(signal, giveUp);
  if (signal?.aborted) giveUp();
  let isNeeded = true;
  let looking: Promise<void> | undefined;
  const look = async () => {
    isNeeded = !(await isOver().catch(() => false));
    looking = undefined;
    if (!isNeeded) controller.abort();
  };
  const protocol = lockProtocol(settings, [name], note);
  protocol.next = async ({ result }): Promise<Next> => {
    if ((await result) === "refused") looking ??= look();
    return "pause";
  };
  try {
    const call = { signal: controller.signal, deadline, note };
    return await acquire(settings, [name], call, protocol);
  } catch (error) {
    if (looking) await unlessAborted(looking, controller.signal);
    if (signal?.aborted) throw signal.reason;
    if (isNeeded) throw error;
    return undefined;
  } finally {
    end?.();
  }
}
