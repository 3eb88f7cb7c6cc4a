import type { Round } from "../quorum/round.ts";
import { quorumOf } from "../quorum/tally.ts";
import type { CellAnswer } from "../redis/cell.ts";
import type { Runtime } from "../runtime.ts";

/** The latest time that a client's clock may show, in ms since 1970: the year 144683, half way to 2^53. */
const latestTime = 2 ** 52;

/**
 * The lowest fence that may be drawn now: fences are times where they can be, so that a counter that was lost, for example
 * after its retention, is not drawn again.
 *
 * @throws RangeError when the clock shows no time
 */
export function leastFence(runtime: Pick<Runtime, "now">): number {
  const least = Math.floor(runtime.now());
  // Counters would follow a clock up to the largest integer, and nobody could draw a fence any more.
  if (!(Math.abs(least) < latestTime)) throw new RangeError(`the clock says ${least}`);
  return least;
}

/**
 * The highest fence that a round drew, and whether a quorum has it: a later holder meets at least one endpoint of this
 * quorum, and must not find a lower counter there.
 */
export function highestFence({ answers }: Pick<Round<CellAnswer>, "answers">): {
  fence: number;
  isAtQuorum: boolean;
} {
  const fences = answers.flatMap((answer) => (answer as CellAnswer | undefined)?.fence || []);
  const fence = Math.max(...fences);
  const count = fences.filter((drawn) => drawn === fence).length;
  return { fence, isAtQuorum: count >= quorumOf(answers.length) };
}

/**
 * The vote of an endpoint whose counter was raised. A counter larger than the fence was drawn for another holder. If it
 * counted, two that hold the lock at once, because a clock was set, could have the same fence.
 */
export function voteForFence(answer: CellAnswer, fence: number): CellAnswer {
  return answer.fence === fence ? answer : { outcome: "lost" };
}
