// A locking provider of Medusa: its locks are on a quorum of databases. All times that Medusa passes are in seconds.

import type { ILockingProvider, ModuleProviderExports } from "@medusajs/framework/types";
import { endpointsFromEnv, type Lock, Redlock } from "redlock-edge";

type Keys = string | string[];
type Args = { timeout?: number; expire?: number; ownerId?: string | null };

export class RedlockLockingProvider implements ILockingProvider {
  static identifier = "redlock";
  readonly #redlock = new Redlock({ endpoints: endpointsFromEnv(process.env), prefix: "medusa" });
  /** What this process holds by `acquire`. */
  readonly #held = new Map<string, { readonly lock: Lock; readonly ownerId: string | null }>();

  /** All keys at once, or none. Extended while the job runs. */
  execute<T>(keys: Keys, job: (signal?: AbortSignal) => Promise<T>, args: Args = {}): Promise<T> {
    const { timeout = 5, expire = 60 } = args;
    const options = { ttl: expire * 1_000, wait: timeout * 1_000, maxHold: Infinity };
    return this.#redlock.using(keys, options, ({ signal }) => job(signal));
  }

  /** Each key is a lock of its own, because each may be released by itself. */
  async acquire(keys: Keys, { ownerId = null, expire }: Args = {}): Promise<void> {
    // Without `expire` it lasts until it is released, or this process dies.
    const options = { ttl: (expire ?? 60) * 1_000, autoExtend: expire === undefined, maxHold: Infinity };
    const acquired: string[] = [];
    try {
      for (const key of [keys].flat()) {
        const own = this.#held.get(key);
        if (own && ownerId !== null && own.ownerId === ownerId && own.lock.remaining() > 0) {
          await own.lock.extend(options.ttl);
        } else {
          this.#held.set(key, { ownerId, lock: await this.#redlock.acquire(key, { ...options, wait: 0 }) });
          acquired.push(key);
        }
      }
    } catch (error) {
      await this.release(acquired, { ownerId });
      throw error;
    }
  }

  /** Whether this process held all of them, for this owner or for none. */
  async release(keys: Keys, { ownerId = null }: Args = {}): Promise<boolean> {
    const released = [keys].flat().map((key) => {
      const held = this.#held.get(key);
      if (!held || (held.ownerId !== null && held.ownerId !== ownerId)) return false;
      this.#held.delete(key);
      return held.lock.release();
    });
    return (await Promise.all(released)).every(Boolean);
  }

  async releaseAll({ ownerId = null }: Args = {}): Promise<void> {
    const own = [...this.#held].filter(([, held]) => ownerId === null || held.ownerId === ownerId);
    for (const [key, held] of own) await this.release(key, held);
  }
}

export default { module: "locking", services: [RedlockLockingProvider] } satisfies ModuleProviderExports;
