import { acquire } from "../../lock/acquire.ts";
import { lockProtocol } from "../../lock/fence.ts";
import type { Lock } from "../../lock/lock.ts";
import type { AcquireOptions, Settings } from "../../lock/options.ts";
import { onAbort, unlessAborted } from "../../runtime/abort.ts";
import { stopwatch } from "../../runtime/runtime.ts";

export type CallOptions = Pick<AcquireOptions, "signal" | "deadline" | "note">;

interface Looking {
  /** An error is ignored, because the next look will see it. */
  readonly isOver: () => Promise<boolean>;
  /** ms to wait while no endpoint shows that others hold the lock. Default: as for a held lock. */
  readonly patience?: number;
}

/** @returns undefined when it is not needed any more */
export async function acquireLooking(
  settings: Settings,
  name: string,
  { signal, deadline, note }: CallOptions,
  { isOver, patience = Infinity }: Looking,
): Promise<Lock | undefined> {
  const controller = new AbortController();
  const giveUp = () => controller.abort(signal?.reason);
  const stopListening = signal && onAbort(signal, giveUp);
  if (signal?.aborted) giveUp();
  let isNeeded = true;
  let looking: Promise<void> | undefined;
  const look = async () => {
    isNeeded = !(await isOver().catch(() => false));
    looking = undefined;
    if (!isNeeded) controller.abort();
  };
  const protocol = lockProtocol(settings, [name], note);
  let sinceHeld = stopwatch(settings.runtime);
  protocol.next = async ({ calls, result }) => {
    if ((await result) === "refused") looking ??= look();
    if (calls.some(({ answer }) => answer?.outcome === "held")) sinceHeld = stopwatch(settings.runtime);
    return sinceHeld() < patience ? "pause" : "end";
  };
  try {
    return await acquire(settings, [name], { signal: controller.signal, deadline, note }, protocol);
  } catch (error) {
    if (looking) await unlessAborted(looking, controller.signal);
    if (signal?.aborted) throw signal.reason;
    if (isNeeded) throw error;
    return undefined;
  } finally {
    stopListening?.();
  }
}
