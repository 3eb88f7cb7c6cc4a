import { keyOf } from "../redis/keys.ts";
import type { Register } from "../redis/register.ts";
import { tokenLength } from "../runtime.ts";

// What one round requests, and the keys and values that it uses in Redis.

/** The resources, and what identifies their holder. */
export interface LockRequest {
  readonly resources: readonly string[];
  readonly prefix: string;
  /** Fresh in every round, so that a late rollback of one round can never delete what the next one acquired. */
  readonly nonce: string;
  /** Where it was handed over: the nonces of earlier handles, the oldest first. Tombstones are named after that. */
  readonly earlier?: readonly string[] | undefined;
  /** The caller's own token, `""` where there is none: then the nonce alone is the owner. */
  readonly owner: string;
  /** How long an idle fence counter is kept, in ms; 0: no fencing. */
  readonly fenceRetention: number;
  /** The keys to acquire, where they are not the plain locks of the resources. */
  readonly keys?: readonly string[] | undefined;
}

/**
 * How long a tombstone is kept, in ms. No proxy and no platform holds a request up for longer than this after its sender
 * has given it up.
 */
export const tombstoneRetention = 60_000;

/** The register as its holder extends and releases it: with an owner token, every handle of the owner is the holder. */
export function heldRegister({ resources, prefix, nonce, owner, keys }: LockRequest): Register {
  const own = keys ?? resources.map((resource) => keyOf(prefix, "lock", resource));
  return { keys: own, value: nonce + owner, from: owner ? tokenLength + 1 : 1 };
}

/**
 * The register as one round acquires it. Where a script is needed anyway, it has a tombstone: then a request that is
 * executed after its rollback acquires nothing.
 */
export function acquiredRegister(request: LockRequest): Register {
  const { resources, owner, fenceRetention } = request;
  const register = heldRegister(request);
  if (resources.length === 1 && !owner && !fenceRetention) return register;
  return guardedRegister(request);
}

/** The register with its tombstone and its fence counters, also where plain commands acquired it. */
export function guardedRegister(request: LockRequest): Register {
  const { prefix, resources, nonce, earlier: [origin = nonce] = [] } = request;
  const counters = resources.map((resource) => keyOf(prefix, "fence", resource));
  return {
    ...heldRegister(request),
    tombstone: `${keyOf(prefix, "void", resources[0]!)}:${origin}`,
    counters,
  };
}

/** The register as a rollback releases it: exactly what this round acquired, not what its owner held before. */
export function rollbackRegister(request: LockRequest): Register {
  return { ...acquiredRegister(request), from: 1 };
}

/**
 * How long a counter outlives the moment that its fence names, in ms: the retention, counted from the end of a lock
 * of this ttl. It is at least twice the retention, so that most extensions need not renew it.
 */
export function counterTtl(fenceRetention: number, ttl: number): number {
  return fenceRetention + Math.max(fenceRetention, ttl);
}

/** The holder that a stored value names: the owner's token, or the nonce of a handle without one. */
export function holderOf(value: string): string {
  return value.slice(tokenLength) || value;
}
