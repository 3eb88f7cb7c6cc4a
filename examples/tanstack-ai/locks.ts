// The locks of TanStack AI in Redis: what runs under a key in one process keeps all other processes waiting.

import type { LockStore } from "@tanstack/ai/locks";
import type { Redlock } from "redlock-edge";

/** Pass it to `withLocks`. */
export function redlockStore(redlock: Redlock): LockStore {
  // A process that dies frees its keys after the client's ttl; one that lives may work for an hour.
  const options = { wait: 300_000, maxHold: 3_600_000 };
  return {
    withLock: (key, run) => redlock.using(`tanstack-ai:${key}`, options, ({ signal }) => run(signal)),
  };
}
