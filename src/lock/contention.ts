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
