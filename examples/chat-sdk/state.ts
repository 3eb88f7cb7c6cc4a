// A state adapter of Chat SDK whose locks are on a quorum of databases. Everything else stays in the adapter it is given.

import type { Lock as ChatLock, StateAdapter } from "chat";
import { type Lock, LockLostError, type Redlock } from "redlock-edge";
import { forceRelease } from "redlock-edge/inspect";

/** Replaces the locks of a state adapter, and returns that adapter. */
export function withRedlock(state: StateAdapter, redlock: Redlock): StateAdapter {
  // By tokens of our own: Chat SDK logs them, and redlock's are secrets.
  const held = new Map<string, Lock>();
  const nameOf = (threadId: string) => `chat:${threadId}`;

  const locks: Pick<StateAdapter, "acquireLock" | "extendLock" | "releaseLock" | "forceReleaseLock"> = {
    async acquireLock(threadId, ttl) {
      const lock = await redlock.tryAcquire(nameOf(threadId), { ttl });
      if (!lock) return null;
      const token = crypto.randomUUID();
      held.set(token, lock);
      return { threadId, token, expiresAt: expiryOf(lock) };
    },

    /** False: it is lost. An error: the databases did not answer, and Chat SDK tries again. */
    async extendLock({ token }: ChatLock, ttl) {
      try {
        return ((await held.get(token)?.extend(ttl)) ?? 0) > 0;
      } catch (error) {
        if (error instanceof LockLostError) return false;
        throw error;
      }
    },

    async releaseLock({ token }: ChatLock) {
      const lock = held.get(token);
      held.delete(token);
      await lock?.release();
    },

    async forceReleaseLock(threadId) {
      await forceRelease(redlock, nameOf(threadId));
    },
  };
  return Object.assign(state, locks);
}

const expiryOf = (lock: Lock) => Date.now() + lock.remaining();
