// What a key of this library's says. src/redis/keys.ts makes them.

/** A key's parts. */
export interface KeyParts {
  readonly key: string;
  readonly prefix: string;
  /** `lock`, `fence`, `idem`, `flight`, `slot:0`, … */
  readonly kind: string;
  readonly resource: string;
}

const form = /^([^{}]*?):(slot:\d+|[a-z-]+):\{([^}]+)\}(?::(.*))?$/s;

/** The parts of a key; undefined: it is not one of this library's. */
export function partsOf(key: string): KeyParts | undefined {
  const match = form.exec(key);
  if (!match) return undefined;
  const [, prefix = "", kind = "", tag = "", rest] = match;
  const resource = rest ?? tag.replaceAll(/%25|%7D/g, decodeURIComponent);
  return { key, prefix, kind, resource };
}

const names: Readonly<Record<string, string>> = {
  lock: "lock",
  fair: "fair lock",
  once: "once",
  "read-write": "read-write lock",
};

/** What is held by such a key, in words; undefined: it holds nothing. */
export function heldKind({ kind }: KeyParts): string | undefined {
  if (kind.startsWith("slot:")) return `semaphore slot ${kind.slice(5)}`;
  return names[kind];
}

const recordNames: Readonly<Record<string, string>> = { idem: "key", flight: "flight" };

/** What a record at such a key is called; undefined: there is none. */
export function recordKind({ kind }: KeyParts): string | undefined {
  return recordNames[kind];
}

/** Whether it has a record, or the count of the runs of a key. */
export const isOfRuns = (parts: KeyParts): boolean =>
  recordKind(parts) !== undefined || parts.kind === "tries";

/** Whether the page shows such a key. */
export function isShown(parts: KeyParts): boolean {
  return isOfRuns(parts) || heldKind(parts) !== undefined;
}

/** What the picture calls it: a resource; for a record, the beginning of its hash. */
export function labelOf(parts: KeyParts): string {
  const { kind, resource } = parts;
  if (isOfRuns(parts)) return `${recordKind(parts) ?? "key"} ${resource.slice(0, 8)}…`;
  return kind.startsWith("slot:") ? `${resource} slot ${kind.slice(5)}` : resource;
}
