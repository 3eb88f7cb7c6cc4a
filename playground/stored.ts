import type { MemoryEndpoint } from "../local/src/memory/index.ts";
import { keyOf, parseKey, type StoredKey } from "../src/stored/parse.ts";
import { epoch } from "./names.ts";

/** One value at one endpoint. */
export interface Stored {
  readonly value: string;
  /** What the picture calls it. */
  readonly label: string;
  readonly holder: string;
  /** When it expires, in ms of the world. */
  readonly until: number;
  readonly fence: number | undefined;
}

/** The kinds of keys that say who holds something. */
const shown = new Set(["lock", "idem"]);

/** What the picture calls a resource. */
export function labelOf({ kind, resource }: StoredKey): string {
  return kind === "idem" ? "delivery" : resource;
}

/** What says who holds something at an endpoint: locks and idempotency records, without counters and tombstones. */
export function storedAt(
  { engine, clockOffset }: MemoryEndpoint,
  ownerOf: (value: string) => string,
): Map<string, Stored> {
  const found = new Map<string, Stored>();
  const offset = typeof clockOffset === "number" ? clockOffset : 0;
  for (const name of engine.execute(["KEYS", "*"]) as string[]) {
    const key = parseKey(name);
    if (!key || !shown.has(key.kind)) continue;
    const { prefix, resource } = key;
    const value = String(engine.execute(["GET", name]));
    const expires = Number(engine.execute(["PEXPIRETIME", name]));
    const fence = engine.execute(["GET", keyOf(prefix, "fence", resource)]);
    found.set(name, {
      value,
      label: labelOf(key),
      holder: ownerOf(value),
      until: expires - offset - epoch,
      fence: fence === null ? undefined : Number(fence),
    });
  }
  return found;
}
