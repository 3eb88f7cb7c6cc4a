import type { Ask } from "../endpoints/ask.ts";
import { counterTerms } from "../lock/fence.ts";
import type { Settings } from "../lock/options.ts";
import { type Round, runRound } from "../quorum/round.ts";
import { type Answer, quorumOf } from "../quorum/tally.ts";
import { type Cell, type CellAnswer, type CounterTerms, keep } from "../redis/cell.ts";

/** What a round has claimed. */
interface Claimed {
  readonly cell: Cell;
  readonly ttl: number;
}

/** The fence of a hold, and its counters at the endpoints, which must outlive the hold, however long that is. */
export class Fence {
  /** The lowest one that may be drawn, until {@link bringToQuorum} has taken the drawn one. */
  #value: number;
  readonly #retention: number;
  /** ms since the counters were written. */
  #sinceCounters: () => number = () => 0;

  /**
   * @param value the fence, or the lowest one that may be drawn
   * @param retention how long an idle counter is kept, in ms
   */
  constructor(value: number, retention: number) {
    this.#value = value;
    this.#retention = retention;
  }

  get value(): number {
    return this.#value;
  }

  /** What a script does with the counters for a hold of this ttl. */
  terms(ttl: number): CounterTerms {
    return counterTerms(this.#value, this.#retention, ttl);
  }

  /**
   * Takes the highest fence of a granted round. Where no quorum has it, a second round raises the counters: a later holder
   * meets at least one endpoint of a quorum, and must not find a lower counter there.
   *
   * @returns the second round, where there is one; without its grant there is no fence
   */
  bringToQuorum(
    settings: Settings,
    round: Round<CellAnswer>,
    { cell, ttl }: Claimed,
  ): Round<CellAnswer> | undefined {
    const { fence, isAtQuorum } = highestFence(round);
    this.#value = fence;
    this.written(round);
    if (isAtQuorum) return undefined;
    const terms = this.terms(ttl);
    const raise = async (call: Ask) => voteForFence(await keep(call, cell, 0, { terms }), fence);
    return runRound(settings, raise, { timeout: ttl });
  }

  /** What an extension does with the counters: nothing, unless their time is nearly over. */
  renewal(ttl: number): CounterTerms | undefined {
    return this.#sinceCounters() + ttl > this.#retention ? this.terms(ttl) : undefined;
  }

  /** Notes that a quorum has written the counters. */
  written({ elapsed }: Round<Answer>): void {
    this.#sinceCounters = elapsed;
  }
}

/** The highest fence that a round drew, and whether a quorum has it. */
function highestFence(round: Round<CellAnswer>): { fence: number; isAtQuorum: boolean } {
  const fences = round.answers().flatMap(({ fence }) => fence || []);
  const fence = Math.max(...fences);
  const count = fences.filter((drawn) => drawn === fence).length;
  return { fence, isAtQuorum: count >= quorumOf(round.calls.length) };
}

/**
 * The vote of an endpoint whose counter was raised. A counter larger than the fence was drawn for another holder. If it
 * counted, two that hold the lock at once, because a clock was set, could have the same fence.
 */
function voteForFence(answer: CellAnswer, fence: number): CellAnswer {
  return answer.fence === fence ? answer : { outcome: "lost" };
}
