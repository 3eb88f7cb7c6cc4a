import { createHash, webcrypto } from "node:crypto";
import { type Actor, enter, type Stage } from "./actor.ts";
import { type Assumption, assumptions } from "./assumptions.ts";
import { Calls } from "./calls.ts";
import { Draw } from "./draw.ts";
import { checkFences } from "./fences.ts";
import { checkHistories } from "./histories.ts";
import { Holds } from "./holds.ts";
import { Ledger } from "./ledger.ts";
import { unleash } from "./nemesis.ts";
import { epoch, Process } from "./process.ts";
import {
  drawScenario,
  type Scenario,
  type Theme,
  themeOf,
  type Work,
  withSynchronizers,
} from "./scenario.ts";
import { Server } from "./server.ts";
import { beginWorkloads, isSynchronizer, type Workload } from "./synchronizers.ts";
import { Wire } from "./wire.ts";
import { Stories, takeTurnWithKey, workIdempotency } from "./work-idempotency.ts";
import { takeTurn, workLock, workUsing } from "./work-lock.ts";
import { drawDropped, type Violation, World } from "./world.ts";

/** What one simulation is to be. */
export interface SimulationOptions {
  /** An integer; the same seed gives the same simulation, byte for byte. */
  readonly seed: number;
  /** What it is about. Default: every third seed is about synchronizers, the others about locks. */
  readonly work?: Theme;
  /** Assumptions to drop. Default: the seed decides, and most drop none. */
  readonly without?: readonly Assumption[];
  /** Whether to write down every event. Default false. */
  readonly traced?: boolean;
}

/** What came of one simulation. */
export interface Simulation {
  readonly seed: number;
  readonly scenario: Scenario;
  readonly dropped: readonly Assumption[];
  readonly violations: readonly Violation[];
  /** What happened only because an assumption was dropped. */
  readonly excused: readonly Violation[];
  readonly counts: ReadonlyMap<string, number>;
  /** Virtual ms. */
  readonly length: number;
  readonly lines: readonly string[];
}

/** Runs one simulation. Only one can run at a time. */
export async function simulate(options: SimulationOptions): Promise<Simulation> {
  const { seed, work: theme = themeOf(seed), without, traced = false } = options;
  const undo = makeDigestSynchronous();
  const draw = new Draw(seed);
  const drawn = drawScenario(draw.fork());
  const dropped = without ?? drawDropped(draw.fork());
  const events = draw.fork();
  const about = theme === "locks" ? drawn : withSynchronizers(drawn, draw.fork(), theme);
  const scenario = repeating(about, without);
  const repeats = scenario.storm.duplicate > 0 || scenario.exactReplies.includes(false);
  const world = new World(events, repeats ? [...dropped, "single execution"] : dropped, traced);
  try {
    await play(world, scenario);
    return {
      seed,
      scenario,
      dropped: world.dropped,
      violations: world.violations,
      excused: world.excused,
      counts: world.counts,
      length: world.now,
      lines: world.lines ?? [],
    };
  } finally {
    for (const server of world.servers) server.close();
    undo();
  }
}

/** Requests are repeated where the scenario says so, unless it is told whether that may be assumed away. */
function repeating(scenario: Scenario, without: readonly Assumption[] | undefined): Scenario {
  if (!without) return scenario;
  const duplicate = without.includes("single execution") ? Math.max(scenario.storm.duplicate, 0.1) : 0;
  return { ...scenario, storm: { ...scenario.storm, duplicate } };
}

async function play(world: World, scenario: Scenario): Promise<void> {
  world.trace(() => `scenario ${JSON.stringify(scenario)} without ${JSON.stringify(world.dropped)}`);
  populate(world, scenario);
  const wire = new Wire(world);
  const locks = new Holds(world, "mutual exclusion");
  const claims = new Holds(world, "one handler at a time");
  const calls = new Calls(world);
  const ledger = new Ledger(world);
  const stage: Stage = { world, scenario, wire, calls, locks, claims, ledger, kept: new Set(), actors: [] };
  const stories = new Stories(world);
  const workloads = beginWorkloads(stage, scenario.work.filter(isSynchronizer));
  const { actors } = stage;
  for (const process of world.processes) actors.push(enter(stage, process));
  const heal = unleash(world, scenario, (process) => {
    locks.look(process);
    claims.look(process);
    for (const workload of workloads.values()) workload.look(process);
  });

  const working = new Set(actors);
  for (const actor of actors) void work(actor, stories, workloads).then(() => working.delete(actor));
  const isAtWork = () => [...working].some(({ process }) => process.alive);
  const faultsEnd = scenario.calls * scenario.ttl * 1.5;
  await world.scheduler.run(faultsEnd, () => !isAtWork());
  heal();
  // What has begun comes to its end, and endpoints that were away come back.
  const rest = Math.max(600_000, scenario.calls * 12 * scenario.ttl);
  await world.scheduler.run(world.now + rest, () => !isAtWork() && world.servers.every(({ up }) => up));
  // So does what is still on its way: a late request takes something once more, until its ttl. And who forgot a
  // lock that is extended all the time holds it until its maxHold.
  await world.scheduler.run(world.now + Math.max(60_000, 7 * scenario.ttl));
  await takeTurns(world, scenario, actors, stories, workloads);

  // Whatever is still on its way arrives.
  await world.scheduler.run(world.now + 90_000);
  for (const server of world.servers) {
    for (const key of server.eternalKeys()) world.violate("every key expires", `${server.name}: ${key}`);
  }
  calls.conclude();
  wire.conclude(stage.kept);
  ledger.conclude();
  checkFences(world, locks.all, scenario.retention);
  checkHistories(world, locks.all, ledger.accesses, scenario.retention);
  for (const workload of workloads.values()) workload.conclude();
}

function populate(world: World, scenario: Scenario): void {
  const { draw, scheduler } = world;
  const steady = world.keeps("bounded drift");
  // A hundredth of the ttl is given away to drift: two clocks may differ by that much.
  const rate = () => 1 + (steady ? draw.between(-0.0045, 0.0045) : draw.between(-0.1, 0.1));
  for (let index = 0; index < scenario.endpoints; index += 1) {
    const offset = draw.pick([0, draw.between(-600_000, 600_000)]);
    world.servers.push(new Server(`r${index}`, scenario.dialects[index]!, scheduler, rate(), offset));
  }
  const agree = !world.keeps("kept memory") && world.keeps("agreeing clocks");
  for (let index = 0; index < scenario.processes; index += 1) {
    const process = new Process(`p${index}`, scheduler, draw.fork(), agree ? 1 : rate());
    process.setClock(
      agree
        ? draw.between(-25, 25)
        : draw.pick([0, draw.between(-1_000, 1_000), draw.between(-3.6e6, 3.6e6)]),
    );
    process.disturbances = 0;
    world.processes.push(process);
  }
  if (!scenario.retention) return;
  const [least, most] = scenario.retention.clocks === "ahead" ? [0, 40] : [-40, 0];
  for (const server of world.servers) server.offset = 0;
  for (const process of world.processes) {
    process.setClock(epoch - process.now() + draw.pick([0, draw.between(least, most)]) * scenario.ttl);
    process.disturbances = 0;
  }
}

async function work(actor: Actor, stories: Stories, workloads: ReadonlyMap<Work, Workload>): Promise<void> {
  const { draw, scenario } = actor;
  for (let left = scenario.calls; left > 0; left -= 1) {
    // Now and then for so long that the fences could have been forgotten.
    const longest = scenario.retention && draw.chance(0.4) ? 6 * scenario.retention.ms : scenario.ttl;
    await actor.sleep(draw.between(0, draw.chance(0.5) ? 5 : longest));
    const kind = draw.pick(scenario.work);
    if (kind === "lock") await workLock(actor);
    else if (kind === "using") await workUsing(actor);
    else if (kind === "idempotency") await workIdempotency(actor, stories);
    else await workloads.get(kind)!.perform(actor);
  }
}

/** Has everybody take the lock once, or run the key, now that nothing is wrong but perhaps one silent endpoint. */
async function takeTurns(
  world: World,
  scenario: Scenario,
  actors: readonly Actor[],
  stories: Stories,
  workloads: ReadonlyMap<Work, Workload>,
): Promise<void> {
  if (scenario.silentMinority) {
    world.draw.pick(world.servers).silent = true;
    // Those that answer may be far, each as far as another continent.
    const far = world.draw.fork();
    if (far.chance(0.5)) for (const server of world.servers) server.slowness = far.between(0, 150);
  }
  const alive = actors.filter(({ process }) => process.alive);
  // Several calls at a time, each with a timeout of its own.
  for (const { process } of alive) process.timeout = 0;
  // Who died, or could not reach an endpoint any more, has left keys that only their ttl removes.
  const leftovers = ["redlock:lock:*", ...[...workloads.values()].flatMap((workload) => workload.leftovers)];
  const rest = Math.max(
    ...world.servers.flatMap((server) => leftovers.map((pattern) => server.longestTtl(pattern))),
  );
  const pending = Math.min(
    2.2 * scenario.ttl,
    Math.max(...world.servers.map((server) => server.longestTtl("redlock:idem:*"))),
  );
  const bound = 1.1 * Math.max(rest, pending) + 15_000;
  world.trace(() => `turns within ${bound.toFixed()} ms`);
  const waiting = new Set<{ readonly actor: Actor }>();
  const begin = (actor: Actor, turn: Promise<void>) => {
    const entry = { actor };
    waiting.add(entry);
    void turn.then(() => waiting.delete(entry));
  };
  for (const actor of alive) {
    const { work: kinds } = scenario;
    if (kinds.includes("idempotency")) begin(actor, takeTurnWithKey(actor, stories, bound));
    if (kinds.includes("lock") || kinds.includes("using")) begin(actor, takeTurn(actor, bound));
    for (const workload of workloads.values()) begin(actor, workload.turn(actor, bound));
  }
  const isOver = () => [...waiting].every(({ actor }) => !actor.process.alive);
  await world.scheduler.run(world.now + bound, isOver);
  if (!isOver()) {
    world.violate(
      "waiters are served",
      `not within ${bound.toFixed()} ms${scenario.silentMinority ? ", one endpoint silent" : ""}`,
    );
    await world.scheduler.run(world.now + 20 * bound, isOver);
  }
}

/**
 * Digests come from a thread pool, in real time. Until undone they are computed at once: the same digest, at
 * the same virtual moment, every time.
 */
function makeDigestSynchronous(): () => void {
  const { subtle } = webcrypto;
  const own = Object.getOwnPropertyDescriptor(subtle, "digest");
  Object.defineProperty(subtle, "digest", {
    configurable: true,
    value: (algorithm: string, data: Uint8Array) => {
      const digest = createHash(algorithm.replace("-", "")).update(data).digest();
      return Promise.resolve(new Uint8Array(digest).buffer);
    },
  });
  return () => {
    if (own) Object.defineProperty(subtle, "digest", own);
    else Reflect.deleteProperty(subtle, "digest");
  };
}

export { assumptions };
