import type { Ask } from "../endpoints/ask.ts";
import { runRound } from "../quorum/round.ts";
import { quorumOf } from "../quorum/tally.ts";
import { type CellAnswer, type CounterTerms, claim, keep } from "../redis/cell.ts";
import { keyOf } from "../redis/keys.ts";
import { type Runtime, stopwatch } from "../runtime.ts";
import { holderText } from "./note.ts";
import type { Settings } from "./options.ts";
import { lockKeys, type Protocol, plain, releaseOf, tombstoneOf, withoutTombstone } from "./protocol.ts";

/** The latest time that a client's clock may show, in ms since 1970: the year 144683, half way to 2^53. */
const latestTime = 2 ** 52;

/**
 * The lowest fence that may be drawn now: a fence is a time if possible, so that a counter that was lost, for example after
 * its retention, is not drawn again.
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
 * What a script does with the counters: their lowest value, and for how many ms they outlive the moment that it names: the
 * retention, counted from the end of a hold of this ttl, and at least twice the retention, so that most extensions need not
 * renew it.
 *
 * The script asks the endpoint for its time to add this to the fence. An expiry as a point in time (`PXAT`) would save
 * that command; but if the endpoint's clock is ahead by more than the retention, the counter would be gone as soon as it is
 * written, and two locks of the same ms could draw the same fence.
 */
export function counterTerms(least: number, fenceRetention: number, ttl: number): CounterTerms {
  return { least, retention: fenceRetention + Math.max(fenceRetention, ttl) };
}

/** A lock as its settings say: plain, or with a fence. */
export function lockOf(settings: Settings, resources: readonly string[], note?: string): Protocol {
  return (settings.fencing ? fenced : plain)(settings, resources, note);
}

/**
 * A lock with a fence: larger than that of every earlier lock of its resources.
 *
 * @param given the fence of a lock that another process has handed over. Default: each round draws one
 */
export function fenced(
  settings: Settings,
  resources: readonly string[],
  note?: string,
  given?: number,
): Protocol {
  const { prefix, runtime, fenceRetention, endpoints } = settings;
  const keys = lockKeys(prefix, resources);
  const counters = resources.map((resource) => keyOf(prefix, "fence", resource));
  let fence = given ?? 0;
  /** ms since before the round that wrote the counters. */
  let sinceCounters = stopwatch(runtime);
  const terms = (ttl: number) => counterTerms(fence, fenceRetention, ttl);
  return {
    cell(nonce) {
      // In each round, because memory that is lost while a call waits may not bring back an earlier time.
      fence = given ?? leastFence(runtime);
      sinceCounters = stopwatch(runtime);
      const tombstone = tombstoneOf(prefix, resources, nonce);
      return { keys, value: holderText({ nonce, note }), tombstone, counters };
    },
    claim: (call, cell, ttl) => claim(call, cell, ttl, terms(ttl)),
    /**
     * If no quorum has the highest fence, raises the counters: a later holder meets at least one endpoint of a quorum, and
     * must not find a lower counter there.
     */
    confirm(round, cell, ttl) {
      const drawn = round.answers().flatMap((answer) => answer.fence ?? []);
      fence = Math.max(...drawn);
      if (drawn.filter((one) => one === fence).length >= quorumOf(endpoints.length)) return undefined;
      const raise = async (call: Ask): Promise<CellAnswer> => {
        const answer = await keep(call, cell, 0, { terms: terms(ttl) });
        // A larger counter was drawn for another holder. If it counted, two that hold the lock at once, because a clock was
        // set, could have the same fence.
        return answer.fence === fence ? answer : { outcome: "lost" };
      };
      return runRound(settings, raise, { timeout: ttl });
    },
    extend(call, cell, ttl) {
      // The counters must outlive the hold, however long that is.
      const isDue = ttl > 0 && sinceCounters() + ttl > fenceRetention;
      return isDue ? keep(call, cell, ttl, { terms: terms(ttl) }) : keep(call, withoutTombstone(cell), ttl);
    },
    release: releaseOf(settings, resources),
    isRestorable: true,
    get fence() {
      return fence;
    },
    waiter: { kind: "lock" },
  };
}
