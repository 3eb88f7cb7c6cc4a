import { onAbort } from "../../abort.ts";
import { emit, type RedlockEvent } from "../../events.ts";
import { acquireWithRetry } from "../../lock/acquire.ts";
import { Lock } from "../../lock/lock.ts";
import type { AcquireOptions, Settings } from "../../lock/options.ts";

/**
 * Acquires a lock, and looks again and again whether it is still needed while others hold it: one look at a time. What a look
 * throws is ignored, because the next one will see it.
 *
 * @param looks `look`, and `enough`, which it aborts when it sees that the lock is not needed
 * @throws as `acquire`; the reason of the caller's signal, or of `enough`
 */
export async function acquireLooking(
  settings: Settings,
  name: string,
  { signal, deadline, note }: Pick<AcquireOptions, "signal" | "deadline" | "note">,
  looks: { readonly look: () => Promise<unknown>; readonly enough: AbortSignal },
): Promise<Lock> {
  const { look, enough } = looks;
  const controller = new AbortController();
  const signals = signal ? [signal, enough] : [enough];
  const giveUp = () => controller.abort(signals.find(({ aborted }) => aborted)!.reason);
  if (signals.some(({ aborted }) => aborted)) giveUp();
  const ends = signals.map((one) => onAbort(one, giveUp));
  let looking: Promise<void> | undefined;
  const onEvent = (event: RedlockEvent) => {
    emit(settings.onEvent, event);
    if (event.type !== "contended") return;
    const done = () => {
      looking = undefined;
    };
    looking ??= look().then(done, done);
  };
  try {
    const call = { signal: controller.signal, deadline, note };
    const outcome = await acquireWithRetry({ ...settings, onEvent }, [name], call);
    if (outcome instanceof Lock) return outcome;
    await looking;
    throw outcome;
  } finally {
    for (const end of ends) end();
  }
}
