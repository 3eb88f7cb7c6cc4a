import type { MemoryEndpoint } from "../local/src/memory/index.ts";
import { keyOf, parseKey, parseValue, type StoredKey } from "../src/inspect/stored-key.ts";
import { epoch, event } from "./names.ts";

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

/** What says who holds something at an endpoint, or has done it: without counters and tombstones. */
export function storedAt(
  { engine, clockOffset }: MemoryEndpoint,
  ownerOf: (value: string) => string,
): Map<string, Stored> {
  const found = new Map<string, Stored>();
  const offset = typeof clockOffset === "number" ? clockOffset : 0;
  for (const name of engine.execute(["KEYS", "*"]) as string[]) {
    const key = parseKey(name);
    const label = key && labelOf(key, () => String(engine.execute(["GET", name])));
    if (key === undefined || label === undefined) continue;
    const { prefix, resource } = key;
    const value = String(engine.execute(["GET", name]));
    const expires = Number(engine.execute(["PEXPIRETIME", name]));
    const fence = engine.execute(["GET", keyOf(prefix, "fence", resource)]);
    found.set(name, {
      value,
      label,
      holder: ownerOf(value),
      until: expires - offset - epoch,
      fence: fence === null ? undefined : Number(fence),
    });
  }
  return found;
}

/** What the picture calls a value; undefined: it does not show it. */
function labelOf(key: StoredKey, value: () => string): string | undefined {
  if (key.kind === "lock") return key.resource;
  if (key.kind !== "idem") return undefined;
  const record = parseValue(key, value());
  return `${event} is ${record?.type === "record" && record.state === "complete" ? "done" : "running"}`;
}
