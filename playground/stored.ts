import type { MemoryEndpoint } from "../local/src/memory/index.ts";
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

/** The kinds of keys that say who holds something, and what the picture calls them. */
const shown: Readonly<Record<string, string>> = { lock: "", fair: "", slot: " permit ", idem: " delivery" };

/** What says who holds something at an endpoint: locks, permits and idempotency records, without counters and tombstones. */
export function storedAt(
  { engine, clockOffset }: MemoryEndpoint,
  ownerOf: (value: string) => string,
): Map<string, Stored> {
  const found = new Map<string, Stored>();
  const offset = typeof clockOffset === "number" ? clockOffset : 0;
  for (const key of engine.execute(["KEYS", "*"]) as string[]) {
    const [, kind = "", more = "", resource = ""] = /^redlock:(\w+)(?::(\d+))?:.*?\{(.*)\}/.exec(key) ?? [];
    if (shown[kind] === undefined) continue;
    const value = String(engine.execute(["GET", key]));
    const expires = Number(engine.execute(["PEXPIRETIME", key]));
    const label = kind === "idem" ? shown[kind] : `${resource}${more && `${shown[kind]}${more}`}`;
    found.set(key, {
      value,
      label: label.trim(),
      holder: ownerOf(value),
      until: expires - offset - epoch,
      fence: fenceAt(engine, key, kind),
    });
  }
  return found;
}

function fenceAt(engine: MemoryEndpoint["engine"], key: string, kind: string): number | undefined {
  if (kind !== "lock") return undefined;
  const fence = engine.execute(["GET", key.replace(":lock:", ":fence:")]);
  return fence === null ? undefined : Number(fence);
}
