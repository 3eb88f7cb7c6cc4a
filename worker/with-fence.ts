import type { RunContext } from "../src/idempotency/index.ts";
import type { Redlock } from "../src/index.ts";

// Extended while the work runs. It is short because it is also how long an entity stays locked after a crash.
const ttl = 5_000;

/**
 * Writes something about an entity as the only one to do so, within an idempotent run. `write` gets the lock's
 * fence, and must make the write depend on it: then its success is final, whatever becomes of the lock.
 *
 * @param options `wait`: how long to wait for the lock, in ms; `run`: the run that this is part of
 * @throws {LockHeldError} the entity was still locked after `wait`
 * @throws {QuorumError} too few endpoints answered
 * @throws {LeaseLostError} the run was over before the lock was there; nothing was written
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
  let written = undefined as Written | undefined;
  try {
    // The lease may end while this waits for the lock, and then another run has the delivery: hence the signal.
    await redlock.using(entity, { fencing: true, ttl, wait, signal: run.signal }, async (lock) => {
      written = await write(lock.fence!);
    });
  } catch (error) {
    // The lock was lost only after the write: its fence was let pass, so nobody newer had written, and it stands.
    // To report a failure now would have the sender bring about a second effect.
    if (!written) throw error;
  }
  return written!;
}
