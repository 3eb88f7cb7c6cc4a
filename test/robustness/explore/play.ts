import { DebounceHistories } from "../sim/debounce-histories.ts";
import { Draw } from "../sim/draw.ts";
import { checkFences } from "../sim/fences.ts";
import { Holds } from "../sim/holds.ts";
import { LatchHistories } from "../sim/latch-histories.ts";
import { Meeting } from "../sim/meeting.ts";
import { OnceHistories } from "../sim/once-histories.ts";
import { RunHistories } from "../sim/run-histories.ts";
import { drawScenario } from "../sim/scenario.ts";
import { sharedBy } from "../sim/shared.ts";
import type { Violation } from "../sim/world.ts";
import { Actor, type Stage } from "./actor.ts";
import type { Scenario } from "./scenario.ts";
import { Watch } from "./watch.ts";
import { World } from "./world.ts";

/** One execution of a scenario, from its beginning. */
export interface Play {
  readonly world: World;
  readonly violations: readonly Violation[];
  /** Follows the consequences of the last step. */
  settle(): Promise<void>;
  /** Checks what can be checked at any time. */
  check(): void;
  /** Checks what can be checked only when nothing is left to happen. */
  checkAtEnd(): void;
}

/** How fast endpoints' clocks run, unless a scenario says otherwise. */
const usualRate = 1.008;

/** ms after which nobody relies on anything: longer than every ttl, and than what follows. */
const longestHold = 10_000;

/** What the simulator draws, and what concerns no small world. */
const drawn = { ...drawScenario(new Draw(1)), wakeUps: undefined, lifetime: "server" } as const;

/** Begins a scenario: all clients start at once. */
export function begin(scenario: Scenario, traced = false): Play {
  const { endpoints: servers, dialect = "upstash", clients, rate = usualRate, clocks } = scenario;
  const world = new World({
    dialect,
    servers,
    clocks: clients.map((_, index) => clocks?.[index] ?? 0),
    rate,
    traced,
  });
  const byInvariant = new Map<string, Holds>();
  const stage = stageOf(world, scenario, byInvariant);
  const { shared, watch } = stage;
  world.watcher = watch;
  for (const client of world.processes) {
    const actor = new Actor(stage, client);
    stage.actors.push(actor);
    shared.actors.push(actor.simulated);
  }
  clients.forEach((program, index) => {
    const failed = (error: unknown) => world.report("calls end", `a client failed: ${error}`);
    void program(stage.actors[index]!).catch(failed);
  });
  return {
    world,
    violations: world.violations,
    settle: settled,
    check: () => world.scheduler.pass(world.now),
    checkAtEnd() {
      watch.checkAtEnd(shared.kept);
      stage.debounces.checkAtEnd();
      shared.calls.checkAtEnd();
      shared.wire.checkAtEnd(shared.kept);
      world.scheduler.pass(world.now + longestHold);
      for (const { all } of byInvariant.values()) checkFences(world, all, shared.scenario.retention);
    },
  };
}

/** What the actors of a world share. */
function stageOf(world: World, scenario: Scenario, byInvariant: Map<string, Holds>): Stage {
  const { endpoints, clients, rate = usualRate, exactReplies = true, retention, garbles = false } = scenario;
  const shared = sharedBy(world, {
    ...drawn,
    endpoints,
    http: garbles,
    exactReplies: world.servers.map(() => exactReplies),
    retention: retention === undefined ? undefined : { ms: retention, clocks: "behind" },
  });
  const { wire } = shared;
  byInvariant.set("mutual exclusion", shared.locks).set("one handler at a time", shared.claims);
  return {
    world,
    shared,
    watch: new Watch(world, wire, exactReplies),
    runs: noted(world, new RunHistories(world, (key) => wire.lastRemoval(key))),
    latches: noted(world, new LatchHistories(world)),
    meeting: noted(world, new Meeting(world, clients.length)),
    once: noted(world, new OnceHistories(world, 1 / rate)),
    debounces: new DebounceHistories(world, wire.announcements, endpoints),
    actors: [],
    holdsOf(invariant) {
      const holds = byInvariant.get(invariant) ?? new Holds(world, invariant);
      byInvariant.set(invariant, holds);
      return holds;
    },
  };
}

/** The same checks, of which each call is a fact that later ones depend on. */
function noted<Checks extends object>(world: World, checks: Checks): Checks {
  return new Proxy(checks, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name, target);
      if (typeof method !== "function") return method;
      return (...given: unknown[]) => {
        world.note(`${String(name)} ${JSON.stringify(given)}`);
        return method.apply(target, given);
      };
    },
  });
}

/** Resolves when all promises wait for a message or a timer: `nextTick` runs after the last microtask. */
function settled(): Promise<void> {
  return new Promise((resolve) => queueMicrotask(() => process.nextTick(resolve)));
}
