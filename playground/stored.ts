import type { MemoryEndpoint } from "../local/src/memory/index.ts";
import { keyOf, parseKey } from "../src/inspect/stored-key.ts";
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

/** What says who holds something at an endpoint: locks, without counters and tombstones. */
export function storedAt(
  { engine, clockOffset }: MemoryEndpoint,
  ownerOf: (value: string) => string,
): Map<string, Stored> {
  const found = new Map<string, Stored>();
  const offset = typeof clockOffset === "number" ? clockOffset : 0;
  for (const name of engine.execute(["KEYS", "*"]) as string[]) {
    const key = parseKey(name);
    if (key?.kind !== "lock") continue;
    const { prefix, resource } = key;
    const value = String(engine.execute(["GET", name]));
    const expires = Number(engine.execute(["PEXPIRETIME", name]));
    const fence = engine.execute(["GET", keyOf(prefix, "fence", resource)]);
    found.set(name, {
      value,
      label: resource,
      holder: ownerOf(value),
      until: expires - offset - epoch,
      fence: fence === null ? undefined : Number(fence),
    });
  }
  return found;
}
