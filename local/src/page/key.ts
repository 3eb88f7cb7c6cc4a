import type { StoredKey } from "../../../src/inspect/stored-key.ts";

// What the page calls a key of this library's.

const names: Readonly<Record<string, string>> = {
  lock: "lock",
  fair: "fair lock",
  once: "once",
  mailbox: "turn",
  "read-write": "read-write lock",
  reentrant: "reentrant lock",
};

/** What is held by such a key, in words; undefined: it holds nothing. */
export function heldKind({ kind, slot }: StoredKey): string | undefined {
  return slot === undefined ? names[kind] : `semaphore slot ${slot}`;
}

/** Whether it has the record of a run, or the count of the runs of a key. */
export const isOfRuns = ({ kind }: StoredKey): boolean => ["idem", "flight", "tries"].includes(kind);

/** Whether the page shows such a key. */
export const isShown = (parts: StoredKey): boolean => isOfRuns(parts) || heldKind(parts) !== undefined;

/** What the page calls it: a resource; of a run, the beginning of its hash. */
export function labelOf(parts: StoredKey): string {
  const { kind, slot, resource } = parts;
  if (isOfRuns(parts)) return `${kind === "flight" ? "flight" : "key"} ${resource.slice(0, 12)}`;
  return slot === undefined ? resource : `${resource} slot ${slot}`;
}
