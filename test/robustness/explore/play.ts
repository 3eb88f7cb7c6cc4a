import type { Invariant } from "../sim/assumptions.ts";
import { DebounceHistories } from "../sim/debounce-histories.ts";
import { LatchHistories } from "../sim/latch-histories.ts";
import { Meeting } from "../sim/meeting.ts";
import { OnceHistories } from "../sim/once-histories.ts";
import { RunHistories } from "../sim/run-histories.ts";
import { Actor, type Stage } from "./actor.ts";
import { Holds } from "./holds.ts";
import type { Scenario } from "./scenario.ts";
import { Store } from "./store.ts";
import { type Checks, type Report, Trails } from "./trails.ts";
import { World } from "./world.ts";

/** An invariant that did not hold. */
export interface Violation {
  readonly invariant: Invariant;
  readonly detail: string;
  /** Virtual ms. */
  readonly at: number;
}

/** One execution of a scenario, from its beginning. */
export interface Play {
  readonly world: World;
  readonly violations: readonly Violation[];
  readonly report: Report;
  /** Follows the consequences of the last step. */
  settle(): Promise<void>;
  /** Checks what can be checked at any time. */
  check(): void;
  /** Checks what can be checked only when nothing is left to happen. */
  checkAtEnd(): void;
}

/** How fast endpoints' clocks run, unless a scenario says otherwise. */
const usualRate = 1.008;

const stores = new Map<string, Store>();

/** How many different commands have been executed on different contents. */
export function executions(): number {
  return [...stores.values()].reduce((sum, store) => sum + store.executions, 0);
}

/** Begins a scenario: all clients start at once. */
export function begin(scenario: Scenario, traced = false): Play {
  const {
    endpoints: servers,
    dialect = "upstash",
    clients,
    rate = usualRate,
    exactReplies = true,
    clocks,
  } = scenario;
  const store = stores.get(dialect) ?? new Store(dialect);
  stores.set(dialect, store);
  const world = new World({
    store,
    servers,
    clocks: clients.map((_, index) => clocks?.[index] ?? 0),
    rate,
    traced,
  });
  const violations: Violation[] = [];
  const report = (invariant: Invariant, detail: string) => {
    world.trace(() => `VIOLATED ${invariant}: ${detail}`);
    violations.push({ invariant, detail, at: world.time });
  };
  const stage = stageOf(world, scenario, report);
  const { trails } = stage;
  world.watcher = trails;
  // `exactReplies` is absent, not false: that is how an endpoint of unknown nature looks.
  const link = { dialect, isHttp: scenario.garbles === true, ...(exactReplies && { exactReplies: true }) };
  for (const client of world.clients) stage.actors.push(new Actor(stage, client, link));
  clients.forEach((program, index) => {
    void program(stage.actors[index]!).catch((error) => report("calls end", `a client failed: ${error}`));
  });
  return {
    world,
    violations,
    report,
    settle: settled,
    check: () => stage.holds.check(),
    checkAtEnd() {
      for (const call of stage.calls) report("calls end", `${call} has not ended`);
      trails.checkAtEnd(stage.kept);
      stage.debounces.checkAtEnd();
    },
  };
}

/** What the actors of a world share. */
function stageOf(world: World, scenario: Scenario, report: Report): Stage {
  const { endpoints, clients, rate = usualRate, exactReplies = true, retention } = scenario;
  const checks: Checks = {
    violate: report,
    check(invariant, holds, detail) {
      if (!holds) report(invariant, detail());
    },
    get now() {
      return world.time;
    },
  };
  const trails = new Trails(checks, exactReplies, world);
  const { operated } = trails;
  return {
    world,
    trails,
    holds: new Holds(report, {
      now: () => world.time,
      retention: retention ?? Number.POSITIVE_INFINITY,
      freed: operated.freed,
    }),
    runs: new RunHistories(checks, (key) => operated.lastRemoval(key)),
    latches: new LatchHistories(checks),
    meeting: new Meeting(checks, clients.length),
    once: new OnceHistories(checks, 1 / rate),
    debounces: new DebounceHistories(checks, trails.announcements, endpoints),
    report,
    checks,
    calls: new Set(),
    kept: new Set(),
    actors: [],
  };
}

/** Resolves when all promises wait for a message or a timer: `nextTick` runs after the last microtask. */
function settled(): Promise<void> {
  return new Promise((resolve) => queueMicrotask(() => process.nextTick(resolve)));
}
