import { type Operation, partition } from "./checker.ts";
import type { FencedInput, FencedOutput, HoldInput, Value } from "./models.ts";

/**
 * One grant of a lock or of a permit, or an attempt that may have led to one. All times are in ms on one exact clock
 * for the whole run; times by a client's own clock must be converted.
 *
 * Attempts that were refused have no effect and no record. A lock on several resources is a record for each.
 */
export interface GrantRecord {
  readonly resource: string;
  /** The client; for reports. */
  readonly holder: string;
  readonly invoked: number;
  /** When the caller got its lock; undefined: unknown outcome (aborted, client died, no quorum answered). */
  readonly acquired?: number | undefined;
  /**
   * When the holder could no longer rely on it: the end of its validity, all extensions included, or of its life.
   * Needed for a grant. Where `remaining()` reached 0 counts, not when the holder noticed.
   */
  readonly validUntil?: number | undefined;
  readonly extensions?: readonly ExtensionRecord[] | undefined;
  readonly releaseInvoked?: number | undefined;
  readonly releaseReturned?: number | undefined;
  /**
   * true: freed; false: it was gone already; undefined: unknown. Of a release that was tried again: the first
   * invocation, the last return, and true if one said true, else undefined.
   */
  readonly released?: boolean | undefined;
  readonly fence?: number | undefined;
}

/** One call of `extend`. */
export interface ExtensionRecord {
  readonly invoked: number;
  /** Undefined, as `extended` is then: it never returned. */
  readonly returned?: number | undefined;
  /** true: extended; false: lost; undefined: unknown. */
  readonly extended?: boolean | undefined;
}

/** One access to a register that fences guard. Times as in {@link GrantRecord}. */
export interface AccessRecord {
  readonly resource: string;
  /** The client; for reports. */
  readonly holder: string;
  readonly access: FencedInput;
  readonly invoked: number;
  /** Undefined: it never returned. */
  readonly returned?: number | undefined;
  /** Undefined: unknown, and it may be executed later. */
  readonly accepted?: boolean | undefined;
  /** The value that `open` returned. */
  readonly value?: Value | undefined;
}

/** What may happen to requests on their way. */
export interface Delivery {
  /**
   * A request may be executed twice, and its second answer may be the one that arrives. A release that returns "gone"
   * may then have freed the hold itself. Default: false.
   */
  readonly duplicates?: boolean;
}

/**
 * The history of each resource, for `lockModel` or `semaphoreModel`.
 *
 * A grant excludes others from its acquire until its release, or until its `end`, an operation of unknown outcome that
 * may happen any time from `validUntil` on. So the next holder may enter after the release or after the validity, not
 * before; and a hold that a late release still frees has lasted until then. A lost extension, and a release that returns
 * "gone", prove that the hold had ended. Within its validity that is impossible, unless an endpoint lost its memory or an
 * operator freed the lock: such runs are no histories of a lock.
 */
export function grantHistory(
  records: readonly GrantRecord[],
  { duplicates = false }: Delivery = {},
): Map<string, Operation<HoldInput, boolean>[]> {
  const histories = new Map<string, Operation<HoldInput, boolean>[]>();
  for (const [resource, grants] of partition(records, (record) => record.resource)) {
    histories.set(
      resource,
      grants.flatMap((record, index) => operationsOf(record, `${record.holder}#${index}`, duplicates)),
    );
  }
  return histories;
}

function operationsOf(
  record: GrantRecord,
  holder: string,
  duplicates: boolean,
): Operation<HoldInput, boolean>[] {
  const { invoked, acquired, releaseInvoked, releaseReturned = Infinity, released } = record;
  const operation = (
    input: HoldInput,
    output: boolean | undefined,
    from: number,
    to: number,
  ): Operation<HoldInput, boolean> => ({
    process: record.holder,
    input,
    output,
    invoked: from,
    returned: to,
  });
  const unknown = (input: HoldInput, from: number) => operation(input, undefined, from, Infinity);
  const release: HoldInput = { kind: "release", holder };

  // It has no user, so it could only have kept others out.
  if (acquired === undefined) return [];
  const { validUntil, extensions = [] } = record;
  if (validUntil === undefined) throw new TypeError(`a grant without validUntil: ${JSON.stringify(record)}`);

  const operations = [operation({ kind: "acquire", holder, fence: record.fence }, true, invoked, acquired)];
  for (const { invoked: from, returned: to, extended } of extensions) {
    if (to !== undefined && extended !== undefined) {
      operations.push(operation({ kind: "extend", holder }, extended, from, to));
    }
  }
  if (releaseInvoked !== undefined && released !== undefined) {
    operations.push(operation(release, released, releaseInvoked, releaseReturned));
    if (!released && duplicates) {
      operations.push(operation(release, undefined, releaseInvoked, releaseReturned));
    }
  }
  // One way to end is enough, and each further one multiplies the search: a hold that a release has freed did not end
  // before, and of an end and a release of unknown outcome the earlier one stands for both.
  const mayRelease = releaseInvoked !== undefined && released === undefined;
  if (mayRelease && releaseInvoked <= validUntil) operations.push(unknown(release, releaseInvoked));
  const ends = mayRelease ? validUntil < releaseInvoked : released !== true;
  if (ends) operations.push(unknown({ kind: "end", holder }, validUntil));
  return operations;
}

/** The history of each resource, for `fencedRegisterModel`. */
export function fencedHistory(
  accesses: readonly AccessRecord[],
): Map<string, Operation<FencedInput, FencedOutput>[]> {
  const histories = new Map<string, Operation<FencedInput, FencedOutput>[]>();
  for (const [resource, own] of partition(accesses, (record) => record.resource)) {
    histories.set(resource, own.map(accessOf));
  }
  return histories;
}

function accessOf(record: AccessRecord): Operation<FencedInput, FencedOutput> {
  const { holder: process, access: input, invoked, returned = Infinity, accepted, value } = record;
  if (accepted === undefined) return { process, input, output: undefined, invoked, returned: Infinity };
  const output = value === undefined ? { accepted } : { accepted, value };
  return { process, input, output, invoked, returned };
}
