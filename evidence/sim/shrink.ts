import type { Assumption } from "./assumptions.ts";
import type { Scenario, Theme } from "./scenario.ts";
import { reductions } from "./smaller.ts";

/** A simulation that breaks an invariant. */
export interface Failing {
  readonly seed: number;
  readonly scenario: Scenario;
  /** The theme and the assumptions, where they are not the seed's own. */
  readonly work?: Theme | undefined;
  readonly without?: readonly Assumption[] | undefined;
}

/** What a try has shown. */
export interface Tried {
  /** Whether the same invariant breaks, with all assumptions that it needs. */
  readonly breaks: boolean;
  /** How many requests were sent: of two that are equal otherwise, the one with fewer is smaller. */
  readonly requests: number;
}

export interface ShrinkOptions {
  /** Simulates it. */
  readonly attempt: (failing: Failing) => Promise<Tried>;
  /** Whether to stop, with the best so far. */
  readonly isOver: () => boolean;
  /** Called with each smaller one, and how many tries it took so far. */
  readonly onSmaller?: (failing: Failing, tries: number) => void;
  /** The assumptions that are dropped with other seeds than the first. */
  readonly without: readonly Assumption[];
}

/** The smallest that was found. */
export interface Shrunk {
  readonly failing: Failing;
  /** How many simulations it took. */
  readonly tries: number;
  /** Whether nothing smaller was left to try. */
  readonly isComplete: boolean;
}

/**
 * Makes a failing simulation smaller, greedily: leaves out kinds of faults, processes, endpoints, calls and everything
 * else that a scenario has, as long as the same invariant breaks. A smaller scenario draws differently, so that each is
 * tried with several seeds.
 */
export async function shrink(
  start: Failing,
  { attempt, isOver, onSmaller, without }: ShrinkOptions,
): Promise<Shrunk> {
  let best = start;
  let tries = 0;
  /** The same with a smaller scenario, with the first seed with which that fails, too. */
  const smaller = async (scenario: Scenario): Promise<Failing | undefined> => {
    const others = seedsFor(scenario);
    for (let seed = 0; seed <= others; seed += 1) {
      const failing = seed === 0 ? { ...best, scenario } : { ...best, scenario, ...other(seed, without) };
      tries += 1;
      const { breaks } = await attempt(failing);
      // An interrupted try says nothing.
      if (isOver()) return undefined;
      if (breaks) return failing;
    }
    return undefined;
  };
  const reduce = async (reduction: (scenario: Scenario) => Scenario[]): Promise<boolean> => {
    for (const scenario of reduction(best.scenario)) {
      if (isOver() || isSame(scenario, best.scenario)) continue;
      const failing = await smaller(scenario);
      if (!failing) continue;
      best = failing;
      onSmaller?.(best, tries);
      await reduce(reduction);
      return true;
    }
    return false;
  };
  for (let found = true; found && !isOver(); ) {
    found = false;
    for (const reduction of reductions) found = (await reduce(reduction)) || found;
  }
  const isComplete = !isOver();
  const last = await fewestRequests(best, { attempt, isOver, without });
  if (last.failing !== best) onSmaller?.(last.failing, tries + last.tries);
  return { failing: last.failing, tries: tries + last.tries, isComplete };
}

const isSame = (one: Scenario, other: Scenario): boolean => JSON.stringify(one) === JSON.stringify(other);

/** Another seed: of two, the first keeps all assumptions, because what then fails is simpler. */
function other(seed: number, without: readonly Assumption[]): Pick<Failing, "seed" | "without"> {
  return seed % 2 === 1 ? { seed, without: [] } : { seed, without };
}

/** How many seeds are tried of a scenario: many where each takes a few ms. */
function seedsFor({ processes, calls }: Scenario): number {
  return Math.min(60, Math.max(10, Math.ceil(400 / (processes * calls))));
}

/** The seed with which the same scenario fails after the fewest requests. */
async function fewestRequests(
  start: Failing,
  { attempt, isOver, without }: ShrinkOptions,
): Promise<{ readonly failing: Failing; readonly tries: number }> {
  let best = start;
  let least = Number.POSITIVE_INFINITY;
  let tries = 0;
  for (let seed = 0; seed <= 2 * seedsFor(start.scenario) && !isOver(); seed += 1) {
    const failing = seed === 0 ? start : { ...start, ...other(seed, start.without ?? without) };
    tries += 1;
    const { breaks, requests } = await attempt(failing);
    if (isOver() || !breaks || requests >= least) continue;
    best = failing;
    least = requests;
  }
  return { failing: best, tries };
}
