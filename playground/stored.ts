import type { MemoryEndpoint } from "../local/src/memory/index.ts";
import { keyOf, parseKey, parseValue, type StoredKey } from "../src/inspect/stored-key.ts";
import { epoch, event, listKey } from "./names.ts";

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

/** What says who holds something at an endpoint, what is done, and what waits: without counters and tombstones. */
export function storedAt(
  { engine, clockOffset }: MemoryEndpoint,
  ownerOf: (value: string) => string,
): Map<string, Stored> {
  const found = new Map<string, Stored>();
  const offset = typeof clockOffset === "number" ? clockOffset : 0;
  // The turn of a mailbox comes before its messages.
  for (const name of (engine.execute(["KEYS", "*"]) as string[]).sort().reverse()) {
    const key = parseKey(name);
    if (name === listKey || key?.kind === "mailbox-order") {
      for (const member of engine.execute(["ZRANGE", name, 0, -1]) as string[]) {
        const message = member.replace(/^i(?=message)/, "");
        const [label = "", holder = ""] = message.split("/");
        found.set(message, {
          value: message,
          label,
          holder,
          until: Number.POSITIVE_INFINITY,
          fence: undefined,
        });
      }
    }
    const text = key && ["lock", "idem", "mailbox"].includes(key.kind) && engine.execute(["GET", name]);
    if (!key || typeof text !== "string") continue;
    const { prefix, resource } = key;
    const expires = Number(engine.execute(["PEXPIRETIME", name]));
    const fence = engine.execute(["GET", keyOf(prefix, "fence", resource)]);
    found.set(name, {
      value: text,
      label: labelOf(key, text),
      holder: ownerOf(text),
      until: expires - offset - epoch,
      fence: fence === null ? undefined : Number(fence),
    });
  }
  return found;
}

/** What the picture calls a value. */
function labelOf(key: StoredKey, text: string): string {
  if (key.kind === "mailbox") return "the turn";
  if (key.kind === "lock") return key.resource;
  const record = parseValue(key, text);
  return `${event} is ${record?.type === "record" && record.state === "complete" ? "done" : "running"}`;
}
