import { createHash } from "node:crypto";
import { ReplyError } from "../../../lock-server/src/engine/reply-error.ts";
import type { Reply } from "../../../lock-server/src/twins/twin.ts";
import { keyOf, parseKey, parseValue, type StoredKey, tokensIn } from "../../../src/inspect/stored-key.ts";
import type { LocalEndpoint } from "../rest/endpoint.ts";
import type { SeenValue } from "./stored.ts";

// Reads what is stored, past HTTP: such reads are not logged, not billed, and hit by no fault.

/** The most of a value that is read: a holder with its note. A record may have a long result, which nobody needs here. */
const longest = 800;
/** Longer keys are not shown. */
const longestKey = 2_000;

/** Kinds whose holders are the members of a sorted set. */
const ofMembers = ["read-write", "reentrant"];

/** Reads keys at one endpoint with nothing in between. `undefined`: nothing is there. */
export async function readKeys(
  endpoint: LocalEndpoint,
  keys: readonly StoredKey[],
): Promise<(SeenValue | undefined)[]> {
  const commands = keys.flatMap(({ key, prefix, kind, resource }) => [
    ofMembers.includes(kind) ? ["ZCOUNT", key, "-inf", "+inf"] : ["GETRANGE", key, 0, longest],
    ["PTTL", key],
    ["GET", keyOf(prefix, "fence", resource)],
  ]);
  const replies = await endpoint.read(commands);
  const now = Date.now();
  return keys.map((parts, index) => storedValue(parts, replies.slice(3 * index, 3 * index + 3), now));
}

/** What three replies say: the value, ms until it expires, and the fence counter. */
export function storedValue(
  parts: StoredKey,
  [value, ttl, counter]: readonly (Reply | ReplyError)[],
  now: number,
): SeenValue | undefined {
  if (typeof ttl !== "number" || ttl === -2 || value instanceof ReplyError) return undefined;
  const until = ttl === -1 ? Number.MAX_SAFE_INTEGER : now + ttl;
  if (ofMembers.includes(parts.kind)) {
    return { parts, holder: `${value} ${value === 1 ? "holder" : "holders"}`, token: undefined, until };
  }
  const text = String(value);
  const [token] = tokensIn(text);
  const said = parseValue(parts, text);
  const found = { parts, token, until };
  if (said?.type === "record") {
    const { state, since } = said;
    return { ...found, holder: digestOf(text), record: since === undefined ? { state } : { state, since } };
  }
  if (said?.type === "count") return { ...found, holder: digestOf(text), attempts: said.attempts };
  const fence = counter instanceof ReplyError ? 0 : Number(counter ?? 0);
  const known = Number.isSafeInteger(fence) && fence > 0;
  const note = said?.note;
  return {
    ...found,
    holder: digestOf(said?.holder ?? text),
    ...(note !== undefined && { note }),
    ...(known && { fence }),
  };
}

function digestOf(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 12);
}

/** One step of a walk over all keys: the keys of the library's form that it found, and where to go on. */
export async function scanStep(
  endpoint: LocalEndpoint,
  cursor: string,
): Promise<{ readonly cursor: string; readonly keys: readonly StoredKey[] }> {
  const [reply] = await endpoint.read([["SCAN", cursor, "COUNT", 100]]);
  const [next, found] = Array.isArray(reply) ? reply : [];
  const keys = Array.isArray(found)
    ? found.flatMap((key) => (String(key).length < longestKey ? (parseKey(String(key)) ?? []) : []))
    : [];
  return { cursor: String(next ?? "0"), keys };
}
