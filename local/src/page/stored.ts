import type { StoredKey } from "../../../src/stored/parse.ts";
import { heldKind } from "./key.ts";
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
  /** ms since 1970; Infinity: it does not expire. */
  readonly until: number;
  readonly fence?: number;
  readonly record?: Pick<RecordRow, "state" | "since">;
  /** How many runs began and neither completed nor failed. */
  readonly attempts?: number;
}

const mostKeys = 1_000;

/** What one endpoint has, as far as it was read. */
export class Stored {
  readonly #values = new Map<string, SeenValue>();

  get(key: string): SeenValue | undefined {
    return this.#values.get(key);
  }

  /** All that has not expired. */
  values(now: number): SeenValue[] {
    for (const [key, { until }] of this.#values) if (until <= now) this.#values.delete(key);
    return [...this.#values.values()];
  }

  /**
   * Takes what was read under a key. Returns whether it differs from before.
   *
   * @param slack ms: expiries that differ by less are the same, read at different moments.
   */
  set(key: string, found: SeenValue | undefined, now: number, slack = 20): boolean {
    const before = this.#values.get(key);
    const was = before && before.until > now ? before : undefined;
    // One that is only read again keeps its place: the newest are the last.
    if (was?.holder !== found?.holder) this.#values.delete(key);
    if (!found) return was !== undefined;
    const sameExpiry = was !== undefined && Math.abs(was.until - found.until) <= slack;
    this.#values.set(key, sameExpiry ? { ...found, until: was.until } : found);
    const [oldest] = this.#values.keys();
    if (this.#values.size > mostKeys && oldest !== undefined) this.#values.delete(oldest);
    return (
      was?.holder !== found.holder ||
      was.fence !== found.fence ||
      was.record?.state !== found.record?.state ||
      !sameExpiry
    );
  }
}

/** What all endpoints have under one key; undefined: the endpoint is not up. */
export type Across = readonly (SeenValue | "free" | undefined)[];

/** Most endpoints' value, and how each stands to it. Undefined: nothing is there. */
export function majorityOf(across: Across) {
  const found = across.filter((each): each is SeenValue => typeof each === "object");
  const count = (holder: string) => found.filter((each) => each.holder === holder).length;
  const [most] = [...found].sort((one, other) => count(other.holder) - count(one.holder));
  if (!most) return undefined;
  const shares = across.map((each): Share => {
    if (each === undefined) return "unknown";
    if (each === "free") return "free";
    return each.holder === most.holder ? "same" : "other";
  });
  const same = found.filter(({ holder }) => holder === most.holder);
  const expiries = same.map(({ until }) => until).sort((one, other) => other - one);
  const fence = Math.max(...same.map((each) => each.fence ?? 0));
  return { value: most, shares, expiries, fence: fence > 0 ? fence : undefined };
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
    ...(fence !== undefined && { fence }),
    ...(client !== undefined && { client }),
  };
}

/**
 * The row of a key of idempotent runs; undefined: nothing is there.
 *
 * @param records What the endpoints have as its record.
 * @param counts What they have as the count of its runs.
 */
export function recordRow(records: Across, counts: Across): RecordRow | undefined {
  const record = majorityOf(records);
  const count = majorityOf(counts);
  const found = record ?? count;
  if (!found) return undefined;
  const attempts = Math.max(
    0,
    ...counts.map((each) => (typeof each === "object" ? (each.attempts ?? 0) : 0)),
  );
  const { kind, resource } = found.value.parts;
  const hash = resource.slice(0, 12);
  return {
    // Without a record no run is under way, and none has completed.
    ...(record?.value.record ?? { state: "unfinished" }),
    key: kind === "flight" ? `flight ${hash}` : hash,
    until: found.expiries[0] ?? 0,
    shares: found.shares,
    ...(attempts > 0 && { attempts }),
  };
}
