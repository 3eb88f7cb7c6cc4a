import type { StoredKey } from "../../../src/inspect/stored-key.ts";
import { heldKind, labelOf } from "./key.ts";
import type { LockRow, RecordRow, Share } from "./state.ts";

// What is stored under the library's keys, by endpoint. No I/O.

/** What one endpoint has under one key. */
export interface SeenValue {
  readonly parts: StoredKey;
  /** Whose it is: a hash. */
  readonly holder: string;
  /** What the holder says of itself. */
  readonly note?: string;
  /** The random name in the value, if there is one. It stays in this process. */
  readonly token: string | undefined;
  /** ms since 1970. */
  readonly until: number;
  readonly fence?: number;
  readonly record?: Pick<RecordRow, "state" | "since">;
  /** How many runs began and neither completed nor failed. */
  readonly attempts?: number;
}

/** What all endpoints have under one key; undefined: the endpoint is not up. */
export type Across = readonly (SeenValue | "free" | undefined)[];

const isValue = (each: Across[number]): each is SeenValue => typeof each === "object";

/** Most endpoints' value, and how each stands to it. Undefined: nothing is there. */
function majorityOf(across: Across) {
  const found = across.filter(isValue);
  const having = (holder: string) => found.filter((each) => each.holder === holder);
  const [value] = [...found].sort((one, other) => having(other.holder).length - having(one.holder).length);
  if (!value) return undefined;
  const shares = across.map((each): Share => {
    if (!isValue(each)) return each ?? "unknown";
    return each.holder === value.holder ? "same" : "other";
  });
  const same = having(value.holder);
  const expiries = same.map(({ until }) => until).sort((one, other) => other - one);
  return { value, shares, expiries, fence: Math.max(...same.map((each) => each.fence ?? 0)) };
}

/**
 * The row of a key that holds something.
 *
 * @param clientOf The name of the client that made a random name.
 */
export function lockRow(
  across: Across,
  quorum: number,
  clientOf: (token: string) => string | undefined,
): LockRow | undefined {
  const majority = majorityOf(across);
  const kind = majority && heldKind(majority.value.parts);
  if (!majority || kind === undefined) return undefined;
  const { value, shares, expiries, fence } = majority;
  const held = expiries.length >= quorum;
  const client = value.token === undefined ? undefined : clientOf(value.token);
  return {
    kind,
    resource: value.parts.resource,
    held,
    holder: value.holder,
    ...(value.note !== undefined && { note: value.note }),
    until: (held ? expiries[quorum - 1] : expiries[0]) ?? 0,
    shares,
    ...(fence > 0 && { fence }),
    ...(client !== undefined && { client }),
  };
}

/**
 * The row of a key of idempotent runs; undefined: nothing is there.
 *
 * @param records What the endpoints have as its record.
 * @param counts What they have as the count of its runs.
 */
export function recordRow(records: Across, counts: Across): Omit<RecordRow, "replays"> | undefined {
  const record = majorityOf(records);
  const found = record ?? majorityOf(counts);
  if (!found) return undefined;
  const attempts = Math.max(0, ...counts.filter(isValue).map((each) => each.attempts ?? 0));
  return {
    // Without a record no run is under way, and none has completed.
    ...(record?.value.record ?? { state: "unfinished" }),
    key: labelOf(found.value.parts),
    until: found.expiries[0] ?? 0,
    shares: found.shares,
    ...(attempts > 0 && { attempts }),
  };
}
