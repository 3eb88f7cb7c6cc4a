import type { RunContext } from "../src/idempotency/index.ts";
import type { Redlock } from "../src/index.ts";

// ms. The lock is extended while the work runs. The ttl is short because after a crash the entity stays locked for it.
const ttl = 5_000;

/**
 * Writes something about an entity under its lock, within an idempotent run. `write` gets the lock's fence and must
 * make the write conditional on it: then a write that succeeded is final, even if the lock is lost afterwards.
 *
 * @param options `wait`: how long to wait for the lock, in ms; `run`: the run that this is part of
 * @throws {LockHeldError} the entity was still locked after `wait`
 * @throws {QuorumError} too few endpoints answered
 * @throws {LeaseLostError} the run ended before the lock was acquired; nothing was written
 * @throws what `write` throws
 *
 * @example
 * await withFence(redlock, "octo/demo#42", { wait: 2_500, run }, (fence) => writeEffect(db, { …, fence }));
 */
export async function withFence<Written extends object>(
  redlock: Redlock,
  entity: string,
  { wait, run }: { readonly wait: number; readonly run: RunContext },
  write: (fence: number) => Promise<Written>,
): Promise<Written> {
  let written: Written | undefined;
  try {
    // The signal: the lease may end while this waits for the lock, and then another run handles the delivery.
    return await redlock.using(
      entity,
      { fencing: true, ttl, wait, signal: run.signal },
      async ({ fence }) => {
        if (fence === undefined) throw new TypeError("a lock with fencing must have a fence");
        written = await write(fence);
        return written;
      },
    );
  } catch (error) {
    // The lock was lost after the write. The write stands: its fence was accepted, so no newer holder had written.
    // Reporting a failure now would make the sender cause a second effect.
    if (written === undefined) throw error;
    return written;
  }
}
