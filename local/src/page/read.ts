import { createHash } from "node:crypto";
import { type Reply, ReplyError } from "../engine/engine.ts";
import type { LocalEndpoint } from "../rest/endpoint.ts";
import { type KeyParts, partsOf, recordKind } from "./key.ts";
import type { StoredValue } from "./stored.ts";

// Reads what is stored, past HTTP: such reads are not logged, not billed, and hit by no fault.

/** The most of a value that is read: a record may have a long result, which nobody needs here. */
const longest = 300;
/** Longer keys are not shown. */
const longestKey = 2_000;

/** Reads keys at one endpoint with nothing in between. `undefined`: nothing is there. */
export async function readKeys(
  endpoint: LocalEndpoint,
  keys: readonly KeyParts[],
): Promise<(StoredValue | undefined)[]> {
  const commands = keys.flatMap((parts) => [
    parts.kind === "read-write" ? ["ZCARD", parts.key] : ["GETRANGE", parts.key, 0, longest],
    ["PTTL", parts.key],
    ["GET", parts.key.replace(`:${parts.kind}:{`, ":fence:{")],
  ]);
  const replies = await endpoint.read(commands);
  const now = Date.now();
  return keys.map((parts, index) => storedValue(parts, replies.slice(3 * index, 3 * index + 3), now));
}

/** What three replies say: the value, ms until it expires, and the fence counter. */
export function storedValue(
  parts: KeyParts,
  [value, ttl, counter]: readonly (Reply | ReplyError)[],
  now: number,
): StoredValue | undefined {
  if (typeof ttl !== "number" || ttl === -2 || value instanceof ReplyError) return undefined;
  const until = ttl === -1 ? Number.MAX_SAFE_INTEGER : now + ttl;
  if (parts.kind === "read-write") {
    return { parts, holder: `${value} ${value === 1 ? "holder" : "holders"}`, token: undefined, until };
  }
  const text = String(value);
  const token = /t[0-9a-f]{32}/.exec(text)?.[0];
  if (recordKind(parts)) {
    return { parts, holder: digestOf(text), token, until, record: recordOf(text) };
  }
  if (parts.kind === "tries") {
    return { parts, holder: digestOf(text), token, until, attempts: Number(/ (\d+)$/.exec(text)?.[1] ?? 0) };
  }
  const fence = counter instanceof ReplyError ? 0 : Number(counter ?? 0);
  // As inspect() does: the owner's token, or the nonce of a handle without one.
  const owner = parts.kind === "once" ? (token ?? text) : text.slice(33) || text;
  const known = Number.isSafeInteger(fence) && fence > 0;
  return { parts, holder: digestOf(owner), token, until, ...(known && { fence }) };
}

function recordOf(text: string): NonNullable<StoredValue["record"]> {
  const match = /^([PCN])1 \S+ (\d+) (?:-|[0-9a-f]+)(?: |$)/.exec(text);
  if (!match) return { state: "corrupt" };
  return { state: match[1] === "P" ? "pending" : "complete", since: Number(match[2]) };
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}

/** One step of a walk over all keys: the keys of the library's form that it found, and where to go on. */
export async function scanStep(
  endpoint: LocalEndpoint,
  cursor: string,
): Promise<{ readonly cursor: string; readonly keys: readonly KeyParts[] }> {
  const [reply] = await endpoint.read([["SCAN", cursor, "COUNT", 100]]);
  const [next, found] = Array.isArray(reply) ? reply : [];
  const keys = Array.isArray(found)
    ? found.flatMap((key) => (String(key).length < longestKey ? (partsOf(String(key)) ?? []) : []))
    : [];
  return { cursor: String(next ?? "0"), keys };
}
