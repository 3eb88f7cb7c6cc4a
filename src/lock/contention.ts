import type { LockHolder } from "../errors.ts";
import type { Call } from "../quorum/call.ts";
import { isVeto, quorumOf } from "../quorum/tally.ts";
import type { CellAnswer } from "../redis/cell.ts";
import { parseHolder } from "./note.ts";

type Calls = readonly Pick<Call<CellAnswer>, "answer">[];

/** ms until a quorum of endpoints may be free. Undefined: too few have returned when they will be. */
export function timeUntilFree(calls: Calls): number | undefined {
  const held = calls.flatMap(({ answer }) => (answer?.outcome === "held" ? [answer.retryAfter ?? 0] : []));
  const missing = quorumOf(calls.length) - (calls.length - held.length);
  const expiry = held.sort((a, b) => a - b)[missing - 1] ?? 0;
  return expiry > 0 ? expiry : undefined;
}

/** What others may know of it. */
export function holderOf(calls: Calls): LockHolder | undefined {
  const value = valueSeen(calls);
  if (value === undefined) return undefined;
  return { note: parseHolder(value).note, expiresIn: timeUntilFree(calls) };
}

/** The value that is in the way at so many endpoints that no other can have a quorum. */
function valueSeen(calls: Calls): string | undefined {
  const shown = calls.flatMap(({ answer }) => (answer?.outcome === "held" ? (answer.other ?? []) : []));
  return shown.find((one) => isVeto(shown.filter((other) => other === one).length, calls.length));
}
