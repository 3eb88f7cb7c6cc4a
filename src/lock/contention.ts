import type { Failure } from "../quorum/round.ts";
import { quorumOf } from "../quorum/tally.ts";
import type { CellAnswer } from "../redis/cell.ts";

/** ms until so many endpoints may be free that a quorum is possible, as far as they returned it. */
export function timeUntilFree(answers: readonly (CellAnswer | Failure | undefined)[]): number | undefined {
  const held = answers.flatMap((answer) => (answer?.outcome === "held" ? [answer.retryAfter ?? 0] : []));
  const missing = quorumOf(answers.length) - (answers.length - held.length);
  const expiry = held.sort((a, b) => a - b)[missing - 1] ?? 0;
  return expiry > 0 ? expiry : undefined;
}

/**
 * A hash of the value that is in the way at so many endpoints that nobody else can have a quorum; undefined where there is
 * none, or the endpoints did not return it. The value itself is a secret, and it is enough to see when it changes.
 */
export function holderSeen(answers: readonly (CellAnswer | Failure | undefined)[]): number | undefined {
  const shown = answers.flatMap((answer) => (answer?.outcome === "held" ? (answer.other ?? []) : []));
  const most = answers.length - quorumOf(answers.length);
  const holder = shown.find((one) => shown.filter((other) => other === one).length > most);
  return holder === undefined ? undefined : hashOf(holder);
}

/** That of Java's strings. */
function hashOf(text: string): number {
  let hash = 0;
  for (const character of text) hash = (31 * hash + character.charCodeAt(0)) | 0;
  return hash;
}
