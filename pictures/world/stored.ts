import type { MemoryEndpoint } from "../../local/src/memory/index.ts";
import { keyOf, parseKey, parseValue, type StoredKey, tokensIn } from "../../src/inspect/stored-key.ts";

/** When the worlds' wall clocks begin, in ms since 1970: so early that fences are short enough to read. */
export const epoch = 1_000;

/** The sorted set of a conversation's messages that is kept by hand, without a mailbox: the endpoints have no lists. */
export const listKey = "messages";

/** One value at one endpoint. */
export interface Stored {
  readonly value: string;
  /** What the picture calls it. */
  readonly key: string;
  readonly holder: string;
  /** When it expires, in ms of the world. */
  readonly until: number;
  readonly fence?: number | undefined;
}

/** What says who holds something at an endpoint, what is done, and what waits: without counters and tombstones. */
export function storedAt(
  { engine }: MemoryEndpoint,
  ownerOf: (token: string) => string,
): Map<string, Stored> {
  const found = new Map<string, Stored>();
  // The turn of a mailbox comes before its messages.
  for (const name of (engine.execute(["KEYS", "*"]) as string[]).sort().reverse()) {
    const key = parseKey(name);
    if (name === listKey || key?.kind === "mailbox-order") {
      for (const member of engine.execute(["ZRANGE", name, 0, -1]) as string[]) {
        const value = member.replace(/^i(?=message)/, "");
        const [message = "", holder = ""] = value.split("/");
        found.set(value, { value, key: message, holder, until: Number.POSITIVE_INFINITY });
      }
    } else if (key && ["lock", "idem", "mailbox"].includes(key.kind)) {
      const value = engine.execute(["GET", name]) as string;
      const fence = engine.execute(["GET", keyOf(key.prefix, "fence", key.resource)]);
      found.set(name, {
        value,
        key: labelOf(key, value),
        holder: ownerOf(tokensIn(value)[0] ?? ""),
        until: Number(engine.execute(["PEXPIRETIME", name])) - epoch,
        fence: fence === null ? undefined : Number(fence),
      });
    }
  }
  return found;
}

/** What the picture calls a value. The one run of the scenes is for `evt_1`. */
function labelOf(key: StoredKey, text: string): string {
  if (key.kind === "mailbox") return "the turn";
  if (key.kind === "lock") return key.resource;
  const record = parseValue(key, text);
  return `evt_1 is ${record?.type === "record" && record.state === "complete" ? "done" : "running"}`;
}
