import type { Register } from "../redis/register.ts";
import { type Runtime, randomToken, tokenLength } from "../runtime.ts";

// What one round asks for, and the keys and values that it comes to in Redis.

/** The resources, and what stands for their holder. */
export interface LockRequest {
  readonly resources: readonly string[];
  readonly prefix: string;
  /** Fresh in every round, so that a late rollback of one round can never delete the grant of the next. */
  readonly nonce: string;
  /** The caller's own token, `""` when there is none: the nonce alone is the owner then. */
  readonly owner: string;
  /** How long an idle fence counter is kept, in ms; 0: no fencing. */
  readonly fenceRetention: number;
  /** Where the nonce is to stand, if not at the resources' own locks. */
  readonly keys?: readonly string[] | undefined;
}

/**
 * How long a tombstone stands, in ms. A request that is executed later than this after it was given up has been
 * held up for longer than any proxy or platform keeps one.
 */
export const tombstoneRetention = 60_000;

/** A grant with a nonce of its own. */
export function newLockRequest(runtime: Runtime, request: Omit<LockRequest, "nonce">): LockRequest {
  return { ...request, nonce: randomToken(runtime) };
}

/**
 * The key of one `kind` for a resource, tagged so that all keys of a resource are in one Redis Cluster slot.
 * A resource with a `{tag}` of its own keeps it. No two resources, kinds or prefixes share a key: what stands before
 * the first brace is the prefix and the kind, because neither has a brace, and the rest tells the resource.
 */
export function keyOf(prefix: string, kind: string, resource: string): string {
  // Redis Cluster looks at the first brace only, and ignores an empty tag.
  const tag = /^[^{]*\{([^}]+)\}/.exec(resource)?.[1];
  if (tag) return `${prefix}:${kind}:{${tag}}:${resource}`;
  return `${prefix}:${kind}:{${resource.replace(/[%}]/g, encodeURIComponent)}}`;
}

/** The grant as its holder renews and releases it: for an owner of one's own, whichever handle took it. */
export function heldRegister({ resources, prefix, nonce, owner, keys }: LockRequest): Register {
  const own = keys ?? resources.map((resource) => keyOf(prefix, "lock", resource));
  return { keys: own, value: nonce + owner, from: owner ? tokenLength + 1 : 1 };
}

/**
 * The grant as this very round takes it. Where plain commands cannot do it, it has a tombstone: then a request
 * that is executed after its rollback takes nothing.
 */
export function acquiredRegister(grant: LockRequest): Register {
  const { resources, owner, fenceRetention } = grant;
  const register = heldRegister(grant);
  if (resources.length === 1 && !owner && !fenceRetention) return register;
  return guardedRegister(grant);
}

/** The grant with its tombstone and its fence counters, also where plain commands took it. */
export function guardedRegister(grant: LockRequest): Register {
  const { prefix, resources, nonce } = grant;
  const counters = resources.map((resource) => keyOf(prefix, "fence", resource));
  return { ...heldRegister(grant), tombstone: `${keyOf(prefix, "void", resources[0]!)}:${nonce}`, counters };
}

/**
 * How long a counter outlives the moment that its fence names, in ms: the retention, counted from the end of a lock
 * of this ttl. It is at least twice the retention, so that most extensions need not renew it.
 */
export function counterTtl({ fenceRetention }: LockRequest, ttl: number): number {
  return fenceRetention + Math.max(fenceRetention, ttl);
}

/** What to withdraw of a round: exactly what it took, not what its owner held before. */
export function rollbackRegister(grant: LockRequest): Register {
  return { ...acquiredRegister(grant), from: 1 };
}

/** Whose a stored value is: an owner's, or nobody's but its handle's. */
export function holderOf(value: string): string {
  return value.slice(tokenLength) || value;
}
