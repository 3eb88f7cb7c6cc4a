import type { EndpointRequest } from "../endpoints/endpoint-request.ts";
import { type CellAnswer, type Fencing, isNative, isSnapshot, readFence } from "./cell.ts";
import { claimScript } from "./claim.lua.ts";
import { runScript, unexpectedReply } from "./script.ts";

// The claim of an idempotency key together with locks, on one endpoint. Each operation is one request, and each may be
// executed twice without harm.

/** Where a claim is stored, or is to be stored. */
export interface ClaimKeys {
  /** The key of the record. */
  readonly record: string;
  /** The pending record. */
  readonly pending: string;
  /** The keys of the locks. */
  readonly locks: readonly string[];
  /** The locks' value. */
  readonly token: string;
  /** The counters from which the fence is drawn, one for each lock. */
  readonly counters: readonly string[];
}

/**
 * Writes the pending record and the locks, all or none, and draws a fence. An answer `held` has the record in the way as
 * `other`; without it, a lock is in the way, and its value is `holder`.
 */
export async function beginClaim(
  call: EndpointRequest,
  keys: ClaimKeys,
  ttl: number,
  fencing: Fencing,
): Promise<CellAnswer> {
  const reply = await operate(call, "begin", keys, { ttl, fencing });
  if (reply[0] === keys.token) return { outcome: "granted", fence: readFence(reply[2]) };
  const [, , what, why, holder] = reply;
  if (what === "r" && typeof why === "string") return { outcome: "held", other: why };
  if (what === "l" && isSnapshot(call, holder, why)) {
    return { outcome: "held", retryAfter: Number(why), holder: String(holder) };
  }
  throw unexpectedReply();
}

/**
 * Gives the record and the locks a new ttl where all of them are this claim's; ttl 0 only checks. With `fencing`, raises
 * the counters to its lowest fence.
 */
export async function extendClaim(
  call: EndpointRequest,
  keys: ClaimKeys,
  ttl: number,
  fencing?: Fencing,
): Promise<CellAnswer> {
  const reply = await operate(call, "extend", keys, { ttl, fencing });
  if (reply[0] !== keys.token) return { outcome: "lost" };
  return { outcome: "granted", ...(fencing && { fence: readFence(reply[2]) }) };
}

/**
 * Puts the next record, if there is one, in place of the pending one, and deletes the locks. Only what is this claim's.
 * The answer is about the record.
 */
export async function endClaim(
  call: EndpointRequest,
  keys: ClaimKeys,
  next = "",
  retention = 0,
): Promise<CellAnswer> {
  const reply = await operate(call, "end", keys, { ttl: retention, next });
  return { outcome: reply[0] === keys.token ? "granted" : "lost" };
}

async function operate(
  call: EndpointRequest,
  operation: "begin" | "extend" | "end",
  { record, pending, locks, token, counters }: ClaimKeys,
  more: { readonly ttl: number; readonly next?: string; readonly fencing?: Fencing | undefined },
): Promise<readonly unknown[]> {
  const { ttl, next = "", fencing } = more;
  const names = [record, ...locks, ...(fencing ? counters : [])];
  const { least, retention } = fencing ?? { least: 0, retention: 0 };
  const native = isNative(call) ? 1 : 0;
  const args = [operation, pending, token, locks.length, ttl, next, least, retention, native];
  const reply = await runScript(call, claimScript, names, args);
  if (!Array.isArray(reply) || !Number.isSafeInteger(reply[1]) || (reply[0] !== token && reply[0] !== 0)) {
    throw unexpectedReply();
  }
  // Beside the script itself, as Upstash bills it.
  call.cost.commands += reply[1];
  return reply;
}
