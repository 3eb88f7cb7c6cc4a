import { type Assumption, invariants } from "../world/invariants.ts";
import type { Scenario } from "../world/scenario.ts";
import type { World } from "../world/world.ts";
import type { Hold } from "./holds.ts";

// How many ms clients' clocks may differ where they agree, plus what counters may be ahead of them.
const disagreement = 51;

/** Checks that fences increase from grant to grant of a resource. */
export function checkFences(world: World, holds: readonly Hold[], retention?: Scenario["retention"]): void {
  const fenced = holds.filter(({ fence }) => fence !== undefined);
  for (const [index, later] of fenced.entries()) {
    for (const earlier of fenced.slice(0, index)) {
      if (!earlier.resources.some((resource) => later.resources.includes(resource))) continue;
      // One grant that was handed off to another process.
      if (earlier.origin === later.origin) continue;
      // Where clients' clocks are behind, only the retention keeps fences rising. It begins when the lock is over, and may
      // end while the later holder waits.
      const gap = later.acquired - (earlier.ended ?? world.now);
      if (retention?.clocks === "behind" && gap > 0.99 * retention.ms) continue;
      // Counters that expire meanwhile need clocks: one that runs slow falls behind the endpoint's.
      const more: readonly Assumption[] = retention ? ["bounded drift"] : [];
      compare(world, earlier, later, more);
    }
  }
}

/** `earlier` was granted before `later`. `more`: assumptions beside those of the invariants. */
function compare(world: World, earlier: Hold, later: Hold, more: readonly Assumption[]): void {
  const [first, second] = [earlier.fence!, later.fence!];
  const wrong = () =>
    `${later.process.name} drew ${second} at ${later.acquired.toFixed()} after ${earlier.process.name} ${first} at ${earlier.acquired.toFixed()}`;
  const atOnce = later.invoked <= earlier.acquired;
  // An operator may free a lock before its holder has its answer, and the next holder may have its own sooner.
  if (atOnce && first !== second && world.freed.has(later.nonce)) return;
  const rises = second > first;
  // Concurrent acquires may return in another order than their fences were drawn: a paused process gets its answers
  // late. Then its validity is over, unless a clock is wrong.
  if (atOnce && first !== second) {
    world.check("fences increase", rises, wrong, ["kept memory", "bounded drift", "a clock that goes on"]);
    return;
  }
  world.check("fences increase", rises, wrong, [...invariants["fences increase"], ...more]);
  // Where memory is kept, this is no check of its own.
  const isApart = later.invoked > earlier.acquired + disagreement;
  if (isApart && !(rises && world.keeps("kept memory"))) {
    world.check("fences outlive memory", rises, wrong, [...invariants["fences outlive memory"], ...more]);
  }
}
