import { checkFences } from "./checks/fences.ts";
import { Holds } from "./checks/holds.ts";
import { Ledger } from "./checks/ledger.ts";
import { Draw } from "./draw.ts";
import { interceptFetch } from "./network/http-link.ts";
import { WakeUps } from "./wire/wake-ups.ts";
import { Wire } from "./wire/wire.ts";
import { type Actor, createActor, longestWait, type SharedContext } from "./workloads/actor.ts";
import { Calls } from "./workloads/calls.ts";
import { meetCrowd } from "./workloads/crowd.ts";
import { meetStall } from "./workloads/stall.ts";
import type { Workload } from "./workloads/workload.ts";
import { createWorkloads } from "./workloads/workloads.ts";
import { makeDigestSynchronous } from "./world/digest.ts";
import { startForging } from "./world/forged.ts";
import type { Assumption } from "./world/invariants.ts";
import { Nemesis } from "./world/nemesis.ts";
import { Process } from "./world/process.ts";
import { drawScenario, type Retention, type Scenario, type Work } from "./world/scenario.ts";
import { Server } from "./world/server.ts";
import { aboutTheme, type Theme, themeOf } from "./world/themes.ts";
import { drawDropped, type Violation, World } from "./world/world.ts";

/** Options of one simulation. */
export interface SimulationOptions {
  /** An integer. The same seed gives the same simulation, byte for byte. */
  readonly seed: number;
  /** What it is about. Default: every third seed is about synchronizers, the others about locks. */
  readonly work?: Theme;
  /** Assumptions to drop. Default: the seed decides, and most seeds drop none. */
  readonly without?: readonly Assumption[];
  /** Whether to record a line for every event. Default false. */
  readonly traced?: boolean;
}

/** The result of one simulation. */
export interface Simulation {
  readonly seed: number;
  readonly dropped: readonly Assumption[];
  readonly violations: readonly Violation[];
  /** Violations that are allowed because an assumption was dropped. */
  readonly excused: readonly Violation[];
  /** How often each event occurred, by name. */
  readonly counts: Readonly<Record<string, number>>;
  /** Virtual ms. */
  readonly length: number;
  /** One line per event if `traced`, else none. */
  readonly lines: readonly string[];
}

/** How many were begun in this process. */
let simulations = 0;

/**
 * Runs one simulation. Only one can run at a time.
 *
 * @example
 * const { violations } = await simulate({ seed: 1 });
 */
export async function simulate(options: SimulationOptions): Promise<Simulation> {
  const { seed, work: theme = themeOf(seed), without } = options;
  const { traced = false } = options;
  const undone = [makeDigestSynchronous(), interceptFetch()];
  const draw = new Draw(seed);
  const drawn = drawScenario(draw.fork());
  const dropped = without ?? drawDropped(draw.fork());
  const events = draw.fork();
  const scenario = withDuplicates(
    aboutTheme(drawn, theme, () => draw.fork()),
    without,
  );
  const repeats = scenario.badNetwork.duplicate > 0 || scenario.exactReplies.includes(false);
  simulations += 1;
  const drops = repeats ? [...dropped, "single execution" as const] : dropped;
  const world = new World(events, { dropped: drops, traced, serial: simulations });
  try {
    await play(world, scenario);
    return {
      seed,
      dropped: world.dropped,
      violations: world.violations,
      excused: world.excused,
      counts: Object.fromEntries(world.counts),
      length: world.now,
      lines: world.lines ?? [],
    };
  } finally {
    for (const undo of undone) undo();
  }
}

/** Where `without` is given, it decides whether the network repeats requests; else the scenario does. */
function withDuplicates(scenario: Scenario, without: readonly Assumption[] | undefined): Scenario {
  if (!without) return scenario;
  const duplicate = without.includes("single execution") ? Math.max(scenario.badNetwork.duplicate, 0.1) : 0;
  return { ...scenario, badNetwork: { ...scenario.badNetwork, duplicate } };
}

/** Everything that takes part in a simulation. */
interface Cast {
  readonly shared: SharedContext;
  /** By kind of work: some kinds have one in common. */
  readonly byKind: ReadonlyMap<Work, Workload>;
  readonly workloads: readonly Workload[];
  readonly holds: ReadonlySet<Holds>;
}

/** Works under faults, lets everything end, probes that everybody is served, and checks the whole run. */
async function play(world: World, scenario: Scenario): Promise<void> {
  world.trace(() => `scenario ${JSON.stringify(scenario)} without ${JSON.stringify(world.dropped)}`);
  const cast = createCast(world, scenario);
  const { actors } = cast.shared;
  const nemesis = new Nemesis(world, scenario, (process) => {
    for (const holds of cast.holds) holds.recheck(process);
  });
  nemesis.start();
  const forging = scenario.wakeUps?.forging;
  const stopForging = forging && startForging(world, forging);
  const working = new Set(actors);
  for (const actor of actors) void work(actor, cast).then(() => working.delete(actor));
  const isAtWork = () => [...working].some(({ process }) => process.alive);
  const faultsEnd = scenario.calls * scenario.ttl * 1.5;
  await world.scheduler.run(faultsEnd, () => !isAtWork());
  nemesis.stop();
  stopForging?.();
  // Calls under way end, and crashed endpoints restart.
  const longestCall = 12 * scenario.ttl + (scenario.wakeUps ? 1.25 * longestWait : 0);
  const rest = Math.max(600_000, scenario.calls * longestCall);
  await world.scheduler.run(world.now + rest, () => !isAtWork() && world.servers.every(({ up }) => up));
  // Messages under way arrive: a late request may acquire something once more, until its ttl. And a forgotten lock
  // with automatic extension is held until its maxHold.
  await world.scheduler.run(world.now + Math.max(60_000, 7 * scenario.ttl));
  await meetCrowd(cast.shared);
  await meetStall(cast.shared);
  await probeAll(cast);
  // Messages of the probes arrive.
  await world.scheduler.run(world.now + 90_000);
  checkAtEnd(cast);
}

function createCast(world: World, scenario: Scenario): Cast {
  createServersAndProcesses(world, scenario);
  const shared = sharedBy(world, scenario);
  const byKind = createWorkloads(shared, scenario.work);
  for (const process of world.processes) shared.actors.push(createActor(shared, process));
  const workloads = [...new Set(byKind.values())];
  const { locks, claims } = shared;
  const holds = new Set([locks, claims, ...workloads.flatMap((workload) => workload.holds ?? [])]);
  return { shared, byKind, workloads, holds };
}

/** What all actors of a world use: nobody has called anything yet. */
function sharedBy(world: World, scenario: Scenario): SharedContext {
  const wakeUps = new WakeUps(world);
  return {
    world,
    scenario,
    wire: new Wire(world, wakeUps),
    wakeUps,
    calls: new Calls(world, wakeUps),
    locks: new Holds(world, "mutual exclusion"),
    claims: new Holds(world, "one handler at a time"),
    ledger: new Ledger(world),
    kept: new Set(),
    actors: [],
  };
}

function createServersAndProcesses(world: World, scenario: Scenario): void {
  const { draw, scheduler } = world;
  const steady = world.keeps("bounded drift");
  // The drift allowance is a hundredth of the ttl: two clocks may differ by that much.
  const rate = () => 1 + (steady ? draw.between(-0.0045, 0.0045) : draw.between(-0.1, 0.1));
  for (const [index, dialect] of scenario.dialects.entries()) {
    const offset = draw.pick([0, draw.between(-600_000, 600_000)]);
    const name = world.ownName(`r${index}`);
    world.servers.push(new Server({ name, dialect, scheduler, rate: rate(), offset }));
  }
  if (scenario.oddEndpoint === "silent") world.servers.at(-1)!.silent = true;
  if (scenario.oddEndpoint === "answers null") world.servers.at(-1)!.answersNull = true;
  const agree = !world.keeps("kept memory") && world.keeps("agreeing clocks");
  for (let index = 0; index < scenario.processes; index += 1) {
    const process = new Process(`p${index}`, scheduler, draw.fork(), agree ? 1 : rate());
    process.startClock(
      agree
        ? draw.between(-25, 25)
        : draw.pick([0, draw.between(-1_000, 1_000), draw.between(-3.6e6, 3.6e6)]),
    );
    world.processes.push(process);
  }
  if (scenario.retention) setClocksApart(world, scenario.retention, scenario.ttl);
}

/** Clients' clocks are ahead of the servers', or behind. */
function setClocksApart({ servers, processes, draw }: World, retention: Retention, ttl: number): void {
  const [least, most] = retention.clocks === "ahead" ? [0, 40] : [-40, 0];
  for (const server of servers) server.offset = 0;
  for (const process of processes) process.startClock(draw.pick([0, draw.between(least, most)]) * ttl);
}

/** One process makes its calls. */
async function work(actor: Actor, { byKind }: Cast): Promise<void> {
  const { draw, scenario } = actor;
  for (let calls = 0; calls < scenario.calls; calls += 1) {
    // Sometimes a pause is long enough to forget fences.
    const longest = scenario.retention && draw.chance(0.4) ? 6 * scenario.retention.ms : scenario.ttl;
    await actor.sleep(draw.between(0, draw.chance(0.5) ? 5 : longest));
    const kind = draw.pick(scenario.work);
    await byKind.get(kind)!.perform(actor, kind);
  }
}

/** After the faults, with at most one silent endpoint, every living process must be served within a bound. */
async function probeAll(cast: Cast): Promise<void> {
  const { world, scenario, actors } = cast.shared;
  if (scenario.silentMinority) silenceOne(world);
  const alive = actors.filter(({ process }) => process.alive);
  // Each process makes several calls at a time, each with a timeout of its own.
  for (const { process } of alive) process.timeout = 0;
  const bound = probeBound(cast);
  world.trace(() => `probes within ${bound.toFixed()} ms`);
  const waiting = new Set<{ readonly actor: Actor }>();
  for (const actor of alive) {
    for (const workload of cast.workloads) {
      const entry = { actor };
      waiting.add(entry);
      void Promise.resolve(workload.probe?.(actor, bound)).then(() => waiting.delete(entry));
    }
  }
  const isOver = () => [...waiting].every(({ actor }) => !actor.process.alive);
  await world.scheduler.run(world.now + bound, isOver);
  const isServed = isOver();
  const when = scenario.silentMinority ? ", one endpoint silent" : "";
  world.check("waiters are served", isServed, () => `not within ${bound.toFixed()} ms${when}`);
  if (isServed) return;
  await world.scheduler.run(world.now + 20 * bound, isOver);
}

function silenceOne({ draw, servers }: World): void {
  draw.pick(servers).silent = true;
  // The others may be far away, each as far as another continent.
  const far = draw.fork();
  if (far.chance(0.5)) for (const server of servers) server.slowness = far.between(0, 150);
}

/** ms within which everybody must be served: what dead or cut-off processes left behind has to expire first. */
function probeBound({ shared: { world, scenario }, workloads }: Cast): number {
  const patterns = ["redlock:lock:*", ...workloads.flatMap(({ blockingKeys = [] }) => blockingKeys)];
  const blocked = Math.max(
    ...world.servers.flatMap((server) => patterns.map((pattern) => server.longestTtl(pattern))),
  );
  // Stored results stand for a day; only a pending record blocks.
  const pending = Math.min(
    2.02 * scenario.ttl,
    Math.max(...world.servers.map((server) => server.longestTtl("redlock:idem:*"))),
  );
  // Where messages get lost, a waiter asks after 4 s, once for each that is served before it, up to twice each; and one
  // that dies in a queue keeps its place for a while.
  const polls = scenario.wakeUps ? 10_000 * world.processes.length + 35_000 : 0;
  const more = Math.max(0, ...workloads.map(({ patience = 0 }) => patience));
  return 1.1 * Math.max(blocked, pending) + polls + more + 15_000;
}

function checkAtEnd({ shared, workloads, holds }: Cast): void {
  const { world, scenario, wire, calls, ledger, kept } = shared;
  for (const server of world.servers) {
    if ((server.execute(["KEYS", "*"]) as string[]).length === 0) continue;
    const keys = server.keysWithoutTtl();
    world.check("every key expires", keys.length === 0, () => `${server.name}: ${keys}`);
  }
  calls.checkAtEnd();
  wire.checkAtEnd(kept);
  ledger.checkAtEnd();
  for (const { all } of holds) checkFences(world, all, scenario.retention);
  for (const workload of workloads) workload.checkAtEnd?.();
}
