import { countOf, parseRecord } from "../idempotency/record.ts";
import { parseHolder } from "../lock/note.ts";
import { keyOf } from "../redis/keys.ts";
import { tokenLength } from "../runtime/runtime.ts";

// For `redlock-edge list`, the local endpoints and the pictures of the docs. No entry of the package.

export { keyOf };

export interface StoredKey {
  readonly key: string;
  readonly prefix: string;
  /**
   * - `lock`: the lock's holder. `fence`: its counter.
   * - `idem`: the record of an idempotent run. `tries`: the count of its runs. `flight`: the record of a
   *   `singleFlight`.
   * - `slot`: a holder of a `Semaphore`'s permit. `limit`: the number of permits.
   * - `read-write`: a holder of a `ReadWriteLock`. `writers`: the waiting writers.
   * - `fair`: the holder of a `FairLock`. `queue`: its waiters. `reentrant`: the holder of a `ReentrantLock`.
   * - `latch`, `barrier`: the arrivals. `debounce`, `singleton`: the last call.
   * - `once`: the interval's claim or run, `once-end`: its end, `once-fence`: its counter.
   * - `mailbox`: the holder of the turn. `mailbox-order` and `mailbox-values`: the waiting messages. `mailbox-done`:
   *   a handled one.
   * - `void`: a tombstone.
   */
  readonly kind: string;
  /** The resource or synchronizer, or for `idem`, `tries` and `flight` the hash of scope and key. */
  readonly resource: string;
  /** Of a `slot`, from 0. */
  readonly slot?: number;
}

/**
 * The opposite of {@link keyOf}.
 *
 * @returns undefined if the key is not one of this library's
 * @example
 * parseKey("redlock:lock:{invoice:42}"); // { prefix: "redlock", kind: "lock", resource: "invoice:42", … }
 */
export function parseKey(key: string): StoredKey | undefined {
  const match = /^([^{}]*?):(?:slot:(\d+)|([a-z-]+)):\{([^}]+)\}(:.*)?$/s.exec(key);
  if (!match) return undefined;
  const [, prefix, slot, kind = "slot", tag, rest = ""] = match;
  // A tombstone's nonce and a handled message's id follow the resource.
  const named = kind === "void" || kind === "mailbox-done" ? rest.replace(/:[^:]*$/, "") : rest;
  const resource = named.slice(1) || tag!.replaceAll(/%25|%7D/g, decodeURIComponent);
  return { key, prefix: prefix!, kind, resource, ...(slot && { slot: Number(slot) }) };
}

export type StoredValue = StoredHold | StoredRecord | StoredCount;

export interface StoredHold {
  readonly type: "hold";
  /**
   * The handle's random name, `reentrant`'s owner, or `r` for a reader. A secret: with it anybody could release the
   * lock.
   */
  readonly holder: string;
  readonly note?: string;
}

export interface StoredRecord {
  readonly type: "record";
  /** `corrupt`: damaged, or from another program. */
  readonly state: "pending" | "complete" | "corrupt";
  /** When the run began or completed, in ms since 1970. */
  readonly since?: number;
}

/** The runs of a key that began and did not end. */
export interface StoredCount {
  readonly type: "count";
  readonly attempts: number;
}

const holds: ReadonlySet<string> = new Set(["lock", "slot", "fair", "reentrant", "once", "mailbox"]);

/**
 * @param text as GET returns it. The first 800 bytes are enough
 * @returns undefined if the value has another form
 */
export function parseValue({ kind }: Pick<StoredKey, "kind">, text: string): StoredValue | undefined {
  if (holds.has(kind)) return { type: "hold", ...holdOf(holderIn({ kind }, text)) };
  if (kind === "idem" || kind === "flight") return { type: "record", ...recordOf(text) };
  const attempts = kind === "tries" ? countOf(text) : undefined;
  return attempts === undefined ? undefined : { type: "count", attempts };
}

export function holderIn({ kind }: Pick<StoredKey, "kind">, text: string): string {
  // The number of the holder's last step follows.
  if (kind === "mailbox") return text.replace(/ \d+$/, "");
  // Confirmations of an interval of `once` come first.
  return text.replace(/^r\d+:/, "");
}

/** A member's group stands after its nonce. */
function holdOf(value: string): Omit<StoredHold, "type"> {
  const { nonce, note } = parseHolder(value);
  return { holder: nonce.slice(tokenLength) || nonce, ...(note !== undefined && { note }) };
}

function recordOf(text: string): Omit<StoredRecord, "type"> {
  const record = parseRecord(text);
  if (!record) return { state: "corrupt" };
  const { state, at } = record;
  return { state, since: at };
}

/** The random names in a value, each of a lock's handle or a run. */
export function tokensIn(text: string): string[] {
  return text.match(/t[0-9a-f]{32}/g) ?? [];
}
