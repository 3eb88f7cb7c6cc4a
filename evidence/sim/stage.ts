import type { Timeline } from "../../playground/picture/timeline.ts";
import type { Redlock } from "../../src/index.ts";
import { type Actor, createActor, type SharedContext } from "./actor.ts";
import { makeDigestSynchronous } from "./digest.ts";
import { Draw } from "./draw.ts";
import { Process } from "./process.ts";
import { Recorder } from "./recorder.ts";
import { drawScenario } from "./scenario.ts";
import { Server } from "./server.ts";
import { sharedBy } from "./shared.ts";
import { World } from "./world.ts";

/** A play in the simulated world: chosen steps of chosen clients, where a simulation draws them. */
export interface Play {
  /** What the picture shows, in one sentence. */
  readonly title: string;
  /** Decides how long each message takes. */
  readonly seed: number;
  readonly clients: readonly string[];
  readonly endpoints: number;
  /** Least and most ms that a message takes. */
  readonly latency: readonly [number, number];
  /** What happens, from time 0 on. */
  readonly act: (stage: Stage) => Promise<unknown>;
  /** How many ms are shown. */
  readonly length: number;
}

/** Where a play is performed. Times are ms since its beginning. */
export interface Stage {
  readonly world: World;
  readonly recorder: Recorder;
  readonly actors: readonly Actor[];
  /** Calls `run` at a time. */
  at(time: number, run: () => void): void;
}

/**
 * ms in which endpoints and clients get to know each other before the picture begins: endpoints the library's scripts,
 * clients that a value in the way is returned.
 */
const rehearsal = 1_000;

/** What the clients' clocks show at the beginning, so that fences are numbers that one can read. */
const clockAtStart = 33;

/** Performs a play, and records it. @throws when an invariant does not hold */
export async function perform(play: Play): Promise<Timeline> {
  const undo = makeDigestSynchronous();
  const world = new World(new Draw(play.seed), []);
  const recorder = new Recorder(world.scheduler);
  world.recorder = recorder;
  try {
    const shared = cast(world, play);
    for (const process of world.processes) shared.actors.push(createActor(shared, process));
    for (const { redlock, process } of shared.actors)
      void meetItself(redlock, `rehearsal of ${process.name}`);
    for (const { redlock } of shared.actors) {
      void redlock.acquire("rehearsal", { fencing: true, wait: rehearsal }).then((lock) => lock.release());
    }
    await world.scheduler.run(rehearsal);
    const at = (time: number, run: () => void) => void world.scheduler.at(rehearsal + time, run);
    let end: unknown = "has not ended";
    play.act({ world, recorder, actors: shared.actors, at }).then(
      () => {
        end = undefined;
      },
      (error: unknown) => {
        end = error;
      },
    );
    await world.scheduler.run(rehearsal + play.length);
    const problem = world.violations[0]?.detail ?? end;
    if (problem !== undefined) throw new Error(`“${play.title}”: ${String(problem)}`);
    const lanes = { clients: play.clients, endpoints: world.servers.map(({ name }) => name) };
    return fromStart(recorder.timeline(play.title, lanes), play.length);
  } finally {
    undo();
  }
}

/** Waits for what it has itself. */
async function meetItself(redlock: Redlock, resource: string): Promise<void> {
  const lock = await redlock.acquire(resource);
  await redlock.acquire(resource, { wait: rehearsal / 4 }).catch(() => undefined);
  await lock.release();
}

function cast(world: World, { clients, endpoints, latency }: Play): SharedContext {
  const { scheduler } = world;
  world.network = { ...world.network, latency };
  for (let index = 1; index <= endpoints; index += 1) {
    const name = `endpoint ${index}`;
    world.servers.push(new Server({ name, dialect: "redis", scheduler, rate: 1, offset: 0 }));
  }
  for (const name of clients) {
    const process = new Process(name, scheduler, world.draw.fork(), 1);
    process.setClock(clockAtStart - process.now() - rehearsal);
    process.disturbances = 0;
    world.processes.push(process);
  }
  const plain = { http: false, wakeUps: undefined, lifetime: "server", endpoints } as const;
  const exactReplies = world.servers.map(() => true);
  return sharedBy(world, { ...drawScenario(new Draw(1)), ...plain, exactReplies });
}

/** What happens from the beginning of the play on, in ms since then. */
function fromStart(timeline: Timeline, length: number): Timeline {
  const events = timeline.events.filter(
    ({ time, phase }) => time >= rehearsal && !(time === rehearsal && phase === "answered"),
  );
  const moved = (time: number | undefined, name: "until" | "safe") =>
    time === undefined ? {} : { [name]: time - rehearsal };
  return {
    ...timeline,
    from: 0,
    to: length,
    events: events.map((event) => ({
      ...event,
      time: event.time - rehearsal,
      ...moved(event.until, "until"),
      ...moved(event.safe, "safe"),
    })),
  };
}
