/**
 * The key of one `kind` for a resource: see {@link StoredKey}; of a semaphore's slots `slot:0`, `slot:1`, …. All keys of a
 * resource have the same hash tag, so that Redis Cluster keeps them in one slot. A resource with a `{tag}` of its own
 * keeps it. No two resources, kinds or prefixes share a key: the part before the first brace is the prefix and the kind,
 * because neither contains a brace; the rest identifies the resource.
 */
export function keyOf(prefix: string, kind: string, resource: string): string {
  // Redis Cluster looks at the first brace only, and ignores an empty tag.
  const tag = /^[^{]*\{([^}]+)\}/.exec(resource)?.[1];
  if (tag) return `${prefix}:${kind}:{${tag}}:${resource}`;
  return `${prefix}:${kind}:{${resource.replace(/[%}]/g, encodeURIComponent)}}`;
}

/** What a key of this library's says. */
export interface StoredKey {
  readonly key: string;
  readonly prefix: string;
  /**
   * What is stored there:
   * - `lock`: who holds the lock; `fence`: its counter;
   * - `idem`: the record of an idempotent run; `tries`: the count of its runs; `flight`: the record of a `singleFlight`;
   * - `slot`: who has a permit of a `Semaphore`; `limit`: how many permits there are;
   * - `read-write`: who holds a `ReadWriteLock`; `writers`: which writers wait;
   * - `fair`: who holds a `FairLock`; `queue`: who waits; `reentrant`: who holds a `ReentrantLock`;
   * - `latch`, `barrier`: the arrivals; `debounce`: the last call; `once`: who claims or has the interval, `once-end`: when it
   *   ends, `once-fence`: its counter;
   * - `singleton`: the newest call;
   * - `void`: that something was rolled back, released or handed over.
   */
  readonly kind: string;
  /** What was locked, or the synchronizer's name; of `idem`, `tries` and `flight` the hash of the scope and the key. */
  readonly resource: string;
  /** Of `slot`: its number, from 0. */
  readonly slot?: number;
}

/**
 * Takes a key apart: see {@link keyOf}.
 *
 * @returns undefined where it is not a key of this library's
 * @example
 * parseKey("redlock:lock:{invoice:42}"); // { prefix: "redlock", kind: "lock", resource: "invoice:42", … }
 */
export function parseKey(key: string): StoredKey | undefined {
  const match = /^([^{}]*?):(?:slot:(\d+)|([a-z-]+)):\{([^}]+)\}(:.*)?$/s.exec(key);
  if (!match) return undefined;
  const [, prefix, slot, kind = "slot", tag, rest = ""] = match;
  // A tombstone has a name behind that of the resource.
  const named = kind === "void" ? rest.replace(/:\w+$/, "") : rest;
  const resource = named.slice(1) || tag!.replaceAll(/%25|%7D/g, decodeURIComponent);
  return { key, prefix: prefix!, kind, resource, ...(slot && { slot: Number(slot) }) };
}
