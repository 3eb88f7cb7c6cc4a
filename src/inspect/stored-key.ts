import { countOf, parseRecord } from "../idempotency/record.ts";
import { parseHolder } from "../lock/note.ts";
import { keyOf } from "../redis/keys.ts";
import { tokenLength } from "../runtime/runtime.ts";

// What endpoints have stored, for `redlock-edge list`, the page of the local endpoints, and the playground. It reads nothing
// itself, and is no entry of the package.

export { keyOf };

/** The meaning of one of this library's keys. */
export interface StoredKey {
  readonly key: string;
  readonly prefix: string;
  /**
   * The kind of the value:
   * - `lock`: the lock's holder. `fence`: its counter.
   * - `idem`: the record of an idempotent run. `tries`: the count of its runs. `flight`: the record of a `singleFlight`.
   * - `slot`: a holder of a `Semaphore`'s permit. `limit`: the number of permits.
   * - `read-write`: a holder of a `ReadWriteLock`. `writers`: the waiting writers.
   * - `fair`: the holder of a `FairLock`. `queue`: its waiters. `reentrant`: the holder of a `ReentrantLock`.
   * - `latch`, `barrier`: the arrivals. `debounce`: the last call. `once`: who claims or has the interval, `once-end`: when it
   *   ends, `once-fence`: its counter.
   * - `singleton`: the newest call.
   * - `mailbox`: the holder of the turn. `mailbox-order` and `mailbox-values`: the waiting messages. `mailbox-done`: the mark
   *   of a handled message.
   * - `void`: that something was rolled back, released or handed over.
   */
  readonly kind: string;
  /** The locked resource, or the synchronizer's name. For `idem`, `tries` and `flight`, the hash of the scope and the key. */
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
  // A tombstone has a name after the resource's name, and a handled message its id.
  const named = kind === "void" || kind === "mailbox-done" ? rest.replace(/:[^:]*$/, "") : rest;
  const resource = named.slice(1) || tag!.replaceAll(/%25|%7D/g, decodeURIComponent);
  return { key, prefix: prefix!, kind, resource, ...(slot && { slot: Number(slot) }) };
}

/** The meaning of a value. */
export type StoredValue = StoredHold | StoredRecord | StoredCount;

/** Who holds a lock, a permit or an interval. */
export interface StoredHold {
  readonly type: "hold";
  /**
   * The random name of its handle. For `reentrant`, the owner. Of `read-write`: `r` for a reader, else the writer's token. It
   * is a secret: with it anybody could release the lock.
   */
  readonly holder: string;
  /** Its note. */
  readonly note?: string;
}

/** The record of an idempotent run. */
export interface StoredRecord {
  readonly type: "record";
  /** `corrupt`: this library did not write the value, or it is damaged. */
  readonly state: "pending" | "complete" | "corrupt";
  /** When the run began or completed, in ms since 1970. */
  readonly since?: number;
}

/** How many runs of a key began and neither completed nor failed. */
export interface StoredCount {
  readonly type: "count";
  readonly attempts: number;
}

const holds: ReadonlySet<string> = new Set(["lock", "slot", "fair", "reentrant", "once", "mailbox"]);

/**
 * Reads a value.
 *
 * @param text a string as GET returns it. The first 800 bytes are enough
 * @returns undefined where a value of this kind says nothing that can be shown, or has another form
 */
export function parseValue({ kind }: Pick<StoredKey, "kind">, text: string): StoredValue | undefined {
  if (holds.has(kind)) return { type: "hold", ...holdOf(holderIn({ kind }, text)) };
  if (kind === "idem" || kind === "flight") return { type: "record", ...recordOf(text) };
  const attempts = kind === "tries" ? countOf(text) : undefined;
  return attempts === undefined ? undefined : { type: "count", attempts };
}

/** The holder in a value, as locks store it: without what else the key says. */
export function holderIn({ kind }: Pick<StoredKey, "kind">, text: string): string {
  // The turn of a mailbox: the number of the holder's last step follows.
  if (kind === "mailbox") return text.replace(/ \d+$/, "");
  // An interval of `once` that a run has confirmed: the number of confirmations comes first.
  return text.replace(/^r\d+:/, "");
}

/** Of a member its group, which stands after its nonce. For all others, the nonce and the note. */
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

/**
 * The random names in a value or in an argument of a command. Each is made by one client, and by no other. A lock's names
 * its handle, a record's its run.
 */
export function tokensIn(text: string): string[] {
  return text.match(/t[0-9a-f]{32}/g) ?? [];
}
