import { LockHeldError } from "../../errors.ts";
import type { Lock } from "../../lock/lock.ts";
import {
  type AcquireOptions,
  checkResources,
  type LockOptions,
  resolveSettings,
  type Settings,
} from "../../lock/options.ts";
import type { Redlock } from "../../redlock.ts";

// What synchronizers have in common: the options of a call, and the handle of what was granted.

/** What can be set for a synchronizer and overridden in each call. `undefined` leaves the client's default in place. */
export type SyncOptions = Omit<LockOptions, "fencing" | "fenceRetention">;

/** What belongs to one call only. */
export type WaitOptions = SyncOptions & Pick<AcquireOptions, "signal" | "deadline">;

/** The handle of something held, as it is for a lock. It ends by itself unless it is extended. */
export interface Hold extends AsyncDisposable {
  /** The ttl that Redis was last asked for, in ms. */
  readonly ttl: number;
  /** Aborts with `LockLostError` before what is held can be another's. A release does not abort it. */
  readonly signal: AbortSignal;
  /** ms for which the holder may rely on it; ≤ 0 once that is over. */
  remaining(): number;
  /**
   * Renews it on a quorum; never re-creates what is gone.
   *
   * @param ttl what to ask for from now on, in ms, an integer of at least 10; default: as before
   * @returns the new validity in ms
   * @throws LockLostError when it is gone
   * @throws QuorumError when too few endpoints answered; it may be tried again while validity is left
   */
  extend(ttl?: number): Promise<number>;
  /**
   * Gives it back on every endpoint.
   *
   * @returns true: freed on a quorum; false: it was already gone, or given back before
   * @throws QuorumError when it cannot be told; the ttl frees it
   */
  release(): Promise<boolean>;
  /**
   * Asks a quorum whether it is still held.
   *
   * @throws QuorumError when too few endpoints answered
   */
  verify(): Promise<boolean>;
}

/** What is told of a lock that stands for something else: no token, and no JSON that could be resumed as a lock. */
export function holdOf(lock: Lock): Hold {
  return {
    get ttl() {
      return lock.ttl;
    },
    get signal() {
      return lock.signal;
    },
    remaining: () => lock.remaining(),
    extend: (ttl) => lock.extend(ttl),
    release: () => lock.release(),
    verify: () => lock.verify(),
    [Symbol.asyncDispose]: () => lock[Symbol.asyncDispose](),
  };
}

/** What a call without waiting comes to: null where it is held. */
export function unlessHeld<Held>(acquired: Promise<Held>): Promise<Held | null> {
  return acquired.catch((error) => {
    if (error instanceof LockHeldError) return null;
    throw error;
  });
}

/** A synchronizer's name: one, of 1 … 1 024 characters. */
export function checkName(name: string): string {
  return checkResources([name])[0]!;
}

/** A call's settings: the client's defaults, then these layers. */
export function syncSettings(redlock: Redlock, ...layers: (LockOptions | undefined)[]): Settings {
  // How long the client's locks keep their fences does not bound the ttl of what has none.
  const defaults = { ...redlock.options, fencing: undefined, fenceRetention: undefined };
  return resolveSettings(redlock.settings, defaults, ...layers);
}
