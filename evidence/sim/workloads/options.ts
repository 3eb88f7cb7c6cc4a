import { type Actor, longestWait } from "./actor.ts";

/** The virtual time of a deadline by a process's wall clock, as it is now; Infinity: there is none. */
export function timeOf({ world, process }: Actor, deadline: number | undefined): number {
  return deadline === undefined
    ? Number.POSITIVE_INFINITY
    : world.now + (deadline - process.wallClock()) / process.rate;
}

/** What a holder says of itself: every second one nothing, by a number that is drawn anyway. */
export function noteOf({ process, world }: Actor, ttl: number): string | undefined {
  return ttl % 2 === 0 ? undefined : `${process.name} at ${world.now} "🐘"\n`;
}

/** What is drawn for a call. */
export interface DrawnOptions {
  readonly ttl: number;
  readonly wait: number;
  readonly timeout: number;
  readonly backoff: { readonly min: number; readonly max: number };
  readonly deadline: number | undefined;
}

/** Draws the options of an acquire. */
export function drawOptions({ draw, scenario, process }: Actor): DrawnOptions {
  const ttl = Math.max(10, Math.floor(scenario.ttl * draw.between(0.5, 2)));
  // Longer pauses for longer ttls: polling shows nothing new after the first few rounds.
  const min = scenario.wakeUps
    ? draw.pick([50, 200, 400])
    : draw.pick([5, 25, 100]) * Math.max(1, scenario.ttl / 300);
  const waits = scenario.wakeUps ? [0, ttl, 10_000, longestWait] : [0, 0, 0, ttl / 2, ttl];
  const wait = scenario.lingering ? 2 * ttl : draw.pick(waits);
  const timeout = scenario.lingering
    ? ttl / 4
    : draw.pick([Math.min(1_000, ttl / 3), Math.min(1_000, ttl / 3), ttl, draw.between(5, ttl)]);
  process.timeout = timeout;
  return {
    ttl,
    wait,
    timeout,
    backoff: { min, max: draw.pick([min, 4 * min, 10 * min]) },
    deadline: draw.chance(0.06) ? process.wallClock() + draw.between(0, 2 * ttl) : undefined,
  };
}

/** Why a call is aborted, and when that was. */
export class GivenUp extends Error {
  readonly at: number;

  constructor(at: number) {
    super("given up");
    this.at = at;
  }
}

/** Sometimes a signal that aborts within so many ms, with {@link GivenUp}. */
export function drawSignal({ draw, process, world }: Actor, within: number): AbortSignal | undefined {
  if (!draw.chance(0.1)) return undefined;
  const abort = new AbortController();
  process.timer(draw.between(0, within), () => abort.abort(new GivenUp(world.now)));
  return abort.signal;
}
