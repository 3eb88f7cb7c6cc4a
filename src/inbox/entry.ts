import { checkOptions, checkText, checkType, later, type Schema, wrongType } from "../check/check.ts";
import { RedlockError } from "../errors/errors.ts";

/** One delivery whose effect is committed once. */
export interface InboxEntry {
  /** Tells the delivery from all others: {@link deliveryKey}, or your own names, at most 800 characters as JSON. */
  readonly key: string | readonly string[];
  /** The entity that the effect writes to, with `fence`, `version` or both. At most 800 characters, without NUL. */
  readonly entity?: string | undefined;
  /** The fence of the entity's lock: a positive integer below 2^63, a number only up to 2^53 - 1. */
  readonly fence?: number | bigint | undefined;
  /**
   * The sender's number or time of the state that the effect writes: an integer from 0 to below 2^63, a number only up
   * to 2^53 - 1. An effect with a lower version than the entity's is left out. An equal version has its effect, because
   * events of one second may differ.
   */
  readonly version?: number | bigint | { getTime(): number } | undefined;
}

/** The effect was left out. */
export interface NotFirst {
  readonly first: false;
  /**
   * True: the entity has a newer version. The key is entered, so the sender can stop. Absent: the key was already
   * there.
   */
  readonly stale?: true;
}

/** The outcome of an entry. */
export type InboxOutcome<Result> =
  /** The effect was committed, in one transaction with its key. */
  { readonly first: true; readonly result: Result } | NotFirst;

/** A holder of the lock with a newer fence has written to the entity. Nothing was written. */
export class StaleFenceError extends RedlockError {
  readonly entity: string;
  readonly fence: bigint;

  constructor(entity: string, fence: bigint) {
    super("STALE_FENCE", `${JSON.stringify(entity)} was written under a newer fence than ${fence}`);
    this.name = "StaleFenceError";
    this.entity = entity;
    this.fence = fence;
  }
}

/** The effect of `onceInPostgres` has ended its transaction by its own COMMIT or ROLLBACK. */
export class TransactionEndedError extends RedlockError {
  /**
   * True: the key is committed with the effect's writes so far, so no attempt runs it again. False: the next attempt
   * runs it again. Undefined: unknown.
   */
  readonly committed: boolean | undefined;

  constructor(committed: boolean | undefined, options?: { readonly cause?: unknown }) {
    const key =
      committed === undefined
        ? "nobody knows yet whether its key is committed"
        : committed
          ? "its key is committed, so no attempt has the effect again"
          : "its key is not committed, so the next attempt has the effect again";
    const message = `the effect must leave BEGIN, COMMIT and ROLLBACK alone: it has ended the transaction, and ${key}`;
    super("TRANSACTION_ENDED", message, options);
    this.name = "TransactionEndedError";
    this.committed = committed;
  }
}

/**
 * The key of a verified delivery: provider, handler (`*` if it has none), owner, scope and id.
 *
 * @param owner the tenant, account or user. Needed if senders with different secrets share a provider's name, because
 * one could use up another's ids
 * @throws TypeError a part is missing
 *
 * @example
 * await onceInD1(env.DB, { key: deliveryKey(c.var.webhook) }, [effect]);
 */
export function deliveryKey(
  delivery: {
    readonly provider: string;
    readonly handler?: string | undefined;
    readonly scope?: readonly string[];
    readonly id: string;
  },
  ...owner: readonly string[]
): readonly string[] {
  const { provider, handler = "*", scope = [], id } = checkType("delivery", delivery, "object");
  const key = [provider, handler, ...owner, ...scope, id];
  if (key.every(isPart)) return key;
  throw new TypeError(
    "a delivery's provider, handler, owner, scope and id must be texts, none of them empty",
  );
}

export interface Mark {
  readonly kind: "fence" | "version";
  readonly entity: string;
  readonly number: bigint;
}

export interface InboxRow {
  readonly key: string;
  /** The fence first, because its error does. */
  readonly marks: readonly Mark[];
}

const schema: Schema<InboxEntry> = { key: later, entity: later, fence: later, version: later };

/** In UTF-8 fewer than the 2 704 bytes of an entry in Postgres' index. */
const most = 800;

/**
 * As JSON, a key's parts cannot be confused, and no database refuses a character.
 *
 * @throws TypeError | RangeError naming the argument
 */
export function rowOf(entry: InboxEntry): InboxRow {
  checkOptions("the entry", entry, schema);
  const { key, entity, fence, version } = entry;
  const parts: readonly unknown[] = Array.isArray(key) ? key : [key];
  if (parts.length === 0 || !parts.every(isPart)) {
    throw wrongType("key", key, "a text, or an array of texts, none of them empty");
  }
  if ((entity === undefined) !== (fence === undefined && version === undefined)) {
    throw new TypeError(
      "an entity needs a fence or a version, and they need it: entity and fence, entity and version, or all three",
    );
  }
  const stored = checkText("key", JSON.stringify(parts), most);
  if (entity === undefined) return { key: stored, marks: [] };
  const time = Object(version).getTime;
  const given = [
    ["fence", fence, 1n],
    ["version", typeof time === "function" ? time.call(version) : version, 0n],
  ] as const;
  const marks = given
    .filter(([, value]) => value !== undefined)
    .map(([kind, value, least]) => ({
      kind,
      entity: checkEntity(entity),
      number: checkCount(kind, value, least),
    }));
  return { key: stored, marks };
}

function isPart(part: unknown): boolean {
  return typeof part === "string" && part !== "";
}

function checkEntity(entity: string): string {
  if (!checkText("entity", entity, most).includes("\0")) return entity;
  throw new RangeError("entity has a NUL character in it, which Postgres cannot store");
}

function checkCount(name: string, value: unknown, least: bigint): bigint {
  // A number beyond 2^53 may have been rounded.
  const isExact = typeof value === "bigint" || Number.isSafeInteger(value);
  const exact = isExact ? BigInt(value as number | bigint) : -1n;
  if (exact < least || exact >= 2n ** 63n) {
    throw new RangeError(
      `${name} must be an integer of at least ${least}, below 2^53 or a bigint below 2^63, got ${value}`,
    );
  }
  return exact;
}
