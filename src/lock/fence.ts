import type { Ask } from "../endpoints/ask.ts";
import { type Round, runRound } from "../quorum/round.ts";
import { quorumOf } from "../quorum/tally.ts";
import { type Cell, type CellAnswer, keep } from "../redis/cell.ts";
import { keyOf } from "../redis/keys.ts";
import { type Runtime, stopwatch } from "../runtime/runtime.ts";
import type { Settings } from "./options.ts";
import { type Protocol, plain, tombstoneOf, withoutTombstone } from "./protocol.ts";

/** ms for which a counter outlives the last hold. The clocks of clients may differ by as much. */
const retention = 86_400_000;

/** Of a clock: the year 144683, half way to 2^53. */
const latestTime = 2 ** 52;

/** A fence is a time if possible, so that a counter that was lost is not drawn again. */
function leastFence(runtime: Pick<Runtime, "now">): number {
  const least = Math.floor(runtime.now());
  // Counters would follow the clock to the largest integer.
  if (!(Math.abs(least) < latestTime)) throw new RangeError(`the clock says ${least}`);
  return least;
}

export interface Fence {
  /** Until {@link confirm}, the lowest that may be drawn. */
  readonly value: number;
  begin(): void;
  counted(cell: Cell, ttl: number): Cell;
  /**
   * Takes the highest fence of a granted round. If no quorum has it, raises the counters, because a later holder must
   * not find a lower counter at its quorum.
   *
   * @returns the second round, which must be granted. Undefined: a quorum has the fence
   */
  confirm(granted: Round<CellAnswer>, cell: Cell, ttl: number): Round | undefined;
  /** Renews the counters too if the hold may outlast them. */
  extend(call: Ask, cell: Cell, ttl: number): Promise<CellAnswer>;
}

/** @param given of a lock that another process has handed over */
export function fenceOf(settings: Settings, resources: readonly string[], given?: number): Fence {
  const { prefix, runtime, endpoints } = settings;
  const keys = resources.map((resource) => keyOf(prefix, "fence", resource));
  let value = given ?? 0;
  /** ms since the counters were written. */
  let sinceBegin = stopwatch(runtime);
  const counted = (cell: Cell, ttl: number): Cell => {
    // So that most extensions need not renew the counters.
    const kept = retention + Math.max(retention, ttl);
    return { ...cell, counters: { keys, least: value, retention: kept } };
  };
  return {
    get value() {
      return value;
    },
    begin() {
      // A counter that is lost while a call waits must not bring back an earlier time.
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
        // A larger counter was drawn for another holder. If it counted, two holders at once, because a clock was set,
        // could share one fence.
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

export function lockProtocol(settings: Settings, resources: readonly string[], note?: string): Protocol {
  return (settings.fencing ? fenced : plain)(settings, resources, note);
}

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
