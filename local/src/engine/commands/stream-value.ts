/** One entry of a stream. */
export interface Entry {
  /** See stream-id.ts. */
  readonly id: bigint;
  /** Fields and values in turn. */
  readonly fields: readonly string[];
}

/** An entry that a consumer has read and not yet acknowledged. */
export interface Pending {
  consumer: string;
  /** When it was delivered last, in ms since 1970. */
  time: number;
  /** How often it was delivered. */
  count: number;
}

/** A consumer group. */
export interface Group {
  lastId: bigint;
  /** How many entries it has read; undefined if that is not known. */
  read: number | undefined;
  /** By ID; in the order of IDs where it is read. */
  readonly pending: Map<bigint, Pending>;
  /** When each consumer was seen last, in ms since 1970. */
  readonly consumers: Map<string, number>;
}

/** The value of a stream. Unlike other collections, it may be empty. */
export interface Stream {
  /** In the order of their IDs. */
  entries: Entry[];
  lastId: bigint;
  /** The greatest ID that XDEL has removed. */
  mostDeleted: bigint;
  /** How many entries were ever added. */
  added: number;
  readonly groups: Map<string, Group>;
}

/** A stream without entries. */
export function newStream(): Stream {
  return { entries: [], lastId: 0n, mostDeleted: 0n, added: 0, groups: new Map() };
}

/** Whether entries from an ID on may have been deleted one by one, so that counting them would be wrong. */
export function hasGaps({ entries, mostDeleted }: Stream, from: bigint): boolean {
  return entries.length > 0 && mostDeleted > 0n && mostDeleted >= from;
}

/** How many entries were ever added up to an ID; undefined where Redis cannot tell. */
export function countUpTo({ entries, lastId, mostDeleted, added }: Stream, id: bigint): number | undefined {
  if (added === 0) return 0;
  const first = entries[0]?.id;
  if (first === undefined || id === lastId) return added;
  if (id > lastId || (mostDeleted > 0n && mostDeleted >= first)) return undefined;
  if (id < first) return added - entries.length;
  return id === first ? added - entries.length + 1 : undefined;
}
