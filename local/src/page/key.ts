import type { StoredKey } from "../../../src/stored/parse.ts";

// What the page calls a key of this library's.

const names: Readonly<Record<string, string>> = {
  lock: "lock",
  fair: "fair lock",
  once: "once",
  "read-write": "read-write lock",
  reentrant: "reentrant lock",
};

/** What is held by such a key, in words; undefined: it holds nothing. */
export function heldKind({ kind, slot }: StoredKey): string | undefined {
  return slot === undefined ? names[kind] : `semaphore slot ${slot}`;
}

const recordNames: Readonly<Record<string, string>> = { idem: "key", flight: "flight" };

/** What a record at such a key is called; undefined: there is none. */
export function recordKind({ kind }: StoredKey): string | undefined {
  return recordNames[kind];
}

/** Whether it has a record, or the count of the runs of a key. */
export const isOfRuns = (parts: StoredKey): boolean =>
  recordKind(parts) !== undefined || parts.kind === "tries";

/** Whether the page shows such a key. */
export function isShown(parts: StoredKey): boolean {
  return isOfRuns(parts) || heldKind(parts) !== undefined;
}

/** What the page calls it where it says what happened: a resource; for a record, the beginning of its hash. */
export function labelOf(parts: StoredKey): string {
  const { slot, resource } = parts;
  if (isOfRuns(parts)) return `${recordKind(parts) ?? "key"} ${resource.slice(0, 8)}…`;
  return slot === undefined ? resource : `${resource} slot ${slot}`;
}
