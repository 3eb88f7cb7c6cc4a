import type { Ask } from "../endpoints/ask.ts";
import { type Round, runRound } from "../quorum/round.ts";
import { quorumOf } from "../quorum/tally.ts";
import { type Cell, type CellAnswer, keep } from "../redis/cell.ts";
import { keyOf } from "../redis/keys.ts";
import { type Runtime, stopwatch } from "../runtime/runtime.ts";
import type { Settings } from "./options.ts";
import { type Protocol, plain, tombstoneOf, withoutTombstone } from "./protocol.ts";

/**
 * For how many ms a counter outlives the last hold of its resource, and the moment that its fence names. The clocks of
 * clients may differ by as much.
 */
const retention = 86_400_000;

/** The latest time that a client's clock may show, in ms since 1970: the year 144683, half way to 2^53. */
const latestTime = 2 ** 52;

/**
 * The lowest fence that may be drawn now: a fence is a time if possible, so that a counter that was lost, for example after
 * its retention, is not drawn again.
 *
 * @throws RangeError when the clock shows no time
 */
function leastFence(runtime: Pick<Runtime, "now">): number {
  const least = Math.floor(runtime.now());
  // Counters would follow a clock up to the largest integer, and nobody could draw a fence any more.
  if (!(Math.abs(least) < latestTime)) throw new RangeError(`the clock says ${least}`);
  return least;
}

/** The fence of a claim: drawn by a round, brought to a quorum, and kept as long as the claim. */
export interface Fence {
  /** The lowest one that may be drawn, until {@link confirm} has taken the highest drawn one. */
  readonly value: number;
  /** A new round begins, which draws. */
  begin(): void;
  /** Adds the counters to the cell, for a hold of this ttl. */
  counted(cell: Cell, ttl: number): Cell;
  /**
   * Takes the highest fence of a granted round. If no quorum has it, raises the counters: a later holder meets at least one
   * endpoint of a quorum, and must not find a lower counter there.
   *
   * @returns the second round, without whose grant there is no fence. Undefined: a quorum has it
   */
  confirm(granted: Round<CellAnswer>, cell: Cell, ttl: number): Round | undefined;
  /** Gives the cell a new ttl, and renews the counters if the hold may outlast them. */
  extend(call: Ask, cell: Cell, ttl: number): Promise<CellAnswer>;
}

/**
 * A fence larger than the fence of every earlier claim of these resources.
 *
 * @param given the fence of a lock that another process has handed over. Default: each round draws one
 */
export function fenceOf(settings: Settings, resources: readonly string[], given?: number): Fence {
  const { prefix, runtime, endpoints } = settings;
  const keys = resources.map((resource) => keyOf(prefix, "fence", resource));
  let value = given ?? 0;
  /** ms since before the round that wrote the counters. */
  let sinceBegin = stopwatch(runtime);
  const counted = (cell: Cell, ttl: number): Cell => {
    // Counted from the end of the hold, and at least twice, so that most extensions need not renew the counters.
    const kept = retention + Math.max(retention, ttl);
    return { ...cell, counters: { keys, least: value, retention: kept } };
  };
  return {
    get value() {
      return value;
    },
    begin() {
      // In each round, because memory that is lost while a call waits may not bring back an earlier time.
      value = given ?? leastFence(runtime);
      sinceBegin = stopwatch(runtime);
    },
    counted,
    confirm(round, cell, ttl) {
      const drawn = round.answers().flatMap(({ fence }) => fence ?? []);
      const highest = Math.max(...drawn);
      value = highest;
      if (drawn.filter((one) => one === highest).length >= quorumOf(endpoints.length)) return undefined;
      const raise = async (call: Ask): Promise<CellAnswer> => {
        const answer = await keep(call, counted(cell, ttl), 0);
        // A larger counter was drawn for another holder. If it counted, two that hold the lock at once, because a clock was
        // set, could share one fence.
        return answer.fence === highest ? answer : { outcome: "lost" };
      };
      return runRound(settings, raise, { timeout: ttl });
    },
    extend(call, cell, ttl) {
      const isDue = ttl > 0 && sinceBegin() + ttl > retention;
      return keep(call, isDue ? counted(cell, ttl) : withoutTombstone(cell), ttl);
    },
  };
}

/** A lock as its settings say: plain, or with a fence. */
export function lockProtocol(settings: Settings, resources: readonly string[], note?: string): Protocol {
  return (settings.fencing ? fenced : plain)(settings, resources, note);
}

/** A lock with a fence. `fence`: the fence of a lock that another process has handed over. */
export function fenced(
  settings: Settings,
  resources: readonly string[],
  note?: string,
  fence: Fence = fenceOf(settings, resources),
): Protocol {
  const lock = plain(settings, resources, note);
  return {
    ...lock,
    cell(nonce) {
      fence.begin();
      return { ...lock.cell(nonce), tombstone: tombstoneOf(settings.prefix, resources, nonce) };
    },
    claim: (call, cell, ttl) => lock.claim(call, fence.counted(cell, ttl), ttl),
    confirm: fence.confirm,
    extend: fence.extend,
    get fence() {
      return fence.value;
    },
  };
}
