import type { Invariant } from "../sim/assumptions.ts";
import type { Violation } from "../sim/world.ts";
import { deviations, straight } from "./options.ts";
import { begin, type Play } from "./play.ts";
import type { Scenario } from "./scenario.ts";
import type { World } from "./world.ts";

/** A choice that was not the straight one. */
interface Deviation {
  readonly step: number;
  readonly name: string;
  /** How many deviations there are with this one. */
  readonly spent: number;
  readonly before: Deviation | undefined;
}

/** A violation, and the schedule that shows it. */
export interface Found extends Violation {
  readonly schedule: string;
  readonly spent: number;
}

export interface SearchOptions {
  /** The most deviations. */
  readonly bound: number;
  /** Ends with the first violation of one of these. Default: of any. */
  readonly wanted?: readonly Invariant[] | undefined;
  /** Ends after so many schedules. Default: never. */
  readonly most?: number | undefined;
}

/** The result of a search. */
export interface Search {
  /** Executions from the beginning, each of them different. */
  readonly schedules: number;
  /** Different states reached. */
  readonly states: number;
  /** Steps of the longest execution. */
  readonly depth: number;
  /** Whether everything within the bound was explored. */
  readonly isWhole: boolean;
  /** The violation that ended the search. */
  readonly found: Found | undefined;
  /** Invariants that were violated before, and are not wanted. */
  readonly others: readonly Invariant[];
}

/** No execution of a sound library is as long as this. */
const mostSteps = 3_000;

/**
 * Explores every schedule of a scenario with at most `bound` deviations: first those with none, then with one, and so
 * on, so that the first violation has the fewest. Each execution starts from the beginning, follows the choices of its
 * schedule, and then the straight order. It is cut off at a state that an earlier one has reached: that one had as many
 * deviations left, or more.
 */
export async function search(scenario: Scenario, options: SearchOptions): Promise<Search> {
  const { bound, most = Number.POSITIVE_INFINITY } = options;
  const searching = new Searching(scenario, options);
  let schedules = 0;
  for (let spent = 0; spent <= bound; spent += 1) {
    const level = searching.open[spent]!;
    while (level.length > 0 && schedules < most && !searching.found) {
      schedules += 1;
      await searching.execute(level.pop());
      // Now and then, the process looks at its messages.
      if (schedules % 500 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
  }
  const { states, depth, found, others, open, isGiven } = searching;
  const isWhole = isGiven && open.every((level) => level.length === 0);
  return { schedules, states: states.size, depth, isWhole, found, others: [...others] };
}

class Searching {
  /** Executions to come, by the number of their deviations; undefined: the straight order. */
  readonly open: (Deviation | undefined)[][];
  readonly states = new Set<string>();
  readonly others = new Set<Invariant>();
  found: Found | undefined;
  depth = 0;
  /** Whether what the scenario begins with was possible. */
  isGiven = true;
  readonly #scenario: Scenario;
  readonly #options: SearchOptions;
  readonly #given: Deviation | undefined;

  constructor(scenario: Scenario, options: SearchOptions) {
    this.#scenario = scenario;
    this.#options = options;
    this.open = Array.from({ length: options.bound + 1 }, () => []);
    this.#given = givenOf(scenario);
    this.open[0]!.push(this.#given);
  }

  /** Executes a schedule, and puts those that branch off from it on the list. */
  async execute(last: Deviation | undefined): Promise<void> {
    const { bound } = this.#options;
    const play = begin(this.#scenario);
    const { world } = play;
    const steps = stepsOf(last);
    const spent = last?.spent ?? 0;
    for (let step = 0; !this.found; step += 1) {
      await play.settle();
      play.check();
      const chosen = steps.get(step);
      if (chosen !== undefined) {
        // With another library than the sound one, what is given may not be possible. Then this world shows nothing.
        if (last === this.#given && !isPossible(world, this.#scenario, chosen)) {
          this.isGiven = false;
          return this.#end(play, last, step);
        }
        choose(world, this.#scenario, chosen);
        continue;
      }
      if (step > (last?.step ?? -1)) {
        const key = world.key();
        if (this.states.has(key)) return this.#end(play, last, step);
        this.states.add(key);
        for (const { name, cost } of deviations(world, this.#scenario, bound - spent)) {
          this.open[spent + cost]!.push({ step, name, spent: spent + cost, before: last });
        }
      }
      const next = step < mostSteps ? straight(world) : undefined;
      if (!next) {
        if (step >= mostSteps) world.report("requests are bounded", `no end after ${step} steps`);
        play.checkAtEnd();
        return this.#end(play, last, step);
      }
      next();
    }
  }

  #end({ violations }: Play, last: Deviation | undefined, steps: number): void {
    this.depth = Math.max(this.depth, steps);
    const { wanted } = this.#options;
    for (const violation of violations) {
      if (!wanted || wanted.includes(violation.invariant)) {
        this.found ??= { ...violation, schedule: scheduleOf(last), spent: last?.spent ?? 0 };
      } else this.others.add(violation.invariant);
    }
  }
}

/** The result of a replay. */
export interface Replay {
  readonly lines: readonly string[];
  readonly violations: readonly Violation[];
}

/**
 * Executes one schedule.
 *
 * @param schedule the steps that are not straight, as a violation prints them: `4:late:p0.3,9:go:p0.3`
 */
export async function replay(scenario: Scenario, schedule: string): Promise<Replay> {
  const play = begin(scenario, true);
  const { world, violations } = play;
  const steps = new Map(choicesOf(schedule));
  for (let step = 0; step < mostSteps; step += 1) {
    await play.settle();
    play.check();
    world.step = step;
    const chosen = steps.get(step);
    if (chosen !== undefined) {
      choose(world, scenario, chosen);
      continue;
    }
    const next = straight(world);
    if (!next) break;
    next();
  }
  play.checkAtEnd();
  return { lines: world.lines ?? [], violations };
}

function isPossible(world: World, scenario: Scenario, name: string): boolean {
  return deviations(world, scenario).some((option) => option.name === name);
}

/** @throws RangeError when the choice is not possible there */
function choose(world: World, scenario: Scenario, name: string): void {
  const option = deviations(world, scenario).find((other) => other.name === name);
  if (!option) throw new RangeError(`${name} is not possible at this step`);
  option.run();
}

/** The steps of a schedule that are not straight, and the names of the choices there. */
function choicesOf(schedule: string): [step: number, name: string][] {
  return schedule
    .split(",")
    .filter(Boolean)
    .map((choice) => {
      const [step = "", ...name] = choice.split(":");
      return [Number(step), name.join(":")];
    });
}

/** What all schedules of a scenario begin with. */
function givenOf({ given = "" }: Scenario): Deviation | undefined {
  let last: Deviation | undefined;
  for (const [step, name] of choicesOf(given)) last = { step, name, spent: 0, before: last };
  return last;
}

function stepsOf(last: Deviation | undefined): Map<number, string> {
  const steps = new Map<number, string>();
  for (let deviation = last; deviation; deviation = deviation.before)
    steps.set(deviation.step, deviation.name);
  return steps;
}

function scheduleOf(last: Deviation | undefined): string {
  return [...stepsOf(last)]
    .sort(([one], [other]) => one - other)
    .map(([step, name]) => `${step}:${name}`)
    .join();
}
