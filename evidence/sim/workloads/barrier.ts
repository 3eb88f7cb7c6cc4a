import { CyclicBarrier } from "../../../src/sync/index.ts";
import type { Draw } from "../draw.ts";
import { entryOf } from "../field.ts";
import type { World } from "../world/world.ts";
import type { Actor, SharedContext } from "./actor.ts";
import { drawOptions, drawSignal } from "./options.ts";
import type { Workload } from "./workload.ts";

/** One party of a barrier. */
interface Party {
  readonly name: string;
  /** In how many generations it has begun to arrive, and how many it has passed. */
  begun: number;
  passed: number;
  /** The number of the last generation that it has passed. */
  generation: number | undefined;
  /** The client's barrier, which remembers the generation. */
  barrier?: CyclicBarrier;
}

/** The parties of one barrier, by process. */
type Meeting = Map<string, Party>;

/** Parties that meet at one barrier, again and again. One that gives up waiting comes back. */
export class BarrierWorkload implements Workload {
  readonly #world: World;
  /** How many parties meet while there are faults. */
  readonly #count: number;
  readonly #faulty: Meeting = new Map();
  /** The meeting after the faults. */
  readonly #probes: Meeting = new Map();

  constructor({ world, scenario }: SharedContext, draw: Draw) {
    this.#world = world;
    this.#count = draw.integer(1, Math.min(3, scenario.processes));
  }

  async perform(actor: Actor): Promise<void> {
    const { process, calls, redlock } = actor;
    const parties = this.#count;
    // The first processes are the parties; others have nothing to do here.
    if (this.#world.processes.indexOf(process) >= parties) return;
    const { wait: drawnWait, timeout, backoff, deadline, ttl } = drawOptions(actor);
    const party = partyOf(this.#faulty, actor);
    party.barrier ??= new CyclicBarrier(redlock, "shuffle", { parties });
    const { barrier } = party;
    const signal = drawSignal(actor, ttl);
    const wait = actor.draw.pick([drawnWait, 2 * ttl]);
    const options = { wait, timeout, backoff, deadline, signal };
    // A repeated call for the generation that it has not passed yet counts once.
    party.begun = party.passed + 1;
    const outcome = await calls.make(process, {
      counted: "barrier",
      what: "meet at the barrier",
      bound: wait + 8 * timeout,
      waits: { timeout, backoff, rounds: 8 },
      codes: ["ARRIVALS_MISSING", "NO_QUORUM"],
      run: () => barrier.arriveAndWait(process.name, options),
      signal,
    });
    if ("value" in outcome) this.#passed(this.#faulty, parties, party, outcome.value);
  }

  /** All meet at a new barrier, three times. */
  async probe(actor: Actor, bound: number): Promise<void> {
    const { process, calls } = actor;
    const party = partyOf(this.#probes, actor);
    await actor.sleep(actor.draw.between(0, 50));
    const parties = this.#probes.size;
    const barrier = new CyclicBarrier(actor.redlock, "probe", { parties });
    for (let round = 0; round < 3; round += 1) {
      party.begun = party.passed + 1;
      const outcome = await calls.make(process, {
        what: "probe: meet at the barrier",
        bound,
        run: () => barrier.arriveAndWait(process.name, { wait: 10 * bound }),
      });
      if ("error" in outcome) return;
      this.#passed(this.#probes, parties, party, outcome.value);
    }
  }

  /** Nobody passes before all have arrived as often, and all pass the same generations in order. */
  #passed(meeting: Meeting, count: number, party: Party, generation: number): void {
    const world = this.#world;
    const parties = [...meeting.values()];
    const { name: by, generation: before } = party;
    world.count("barrier passed");
    party.passed += 1;
    const here = parties.filter(({ begun }) => begun >= party.passed).length;
    if (count > 1) {
      const what = () =>
        `${by} passes for the ${party.passed}. time, ${here} of ${count} have arrived as often`;
      world.check("a barrier waits for all", here >= count, what);
    }
    if (before !== undefined) {
      const what = () => `${by} passed ${generation} after ${before}`;
      world.check("generations follow", generation === before + 1, what);
    }
    party.generation = generation;
    for (const other of parties) {
      if (other === party || other.passed !== party.passed) continue;
      const what = () => `${by} passed ${generation}, another ${other.generation}`;
      world.check("generations follow", other.generation === generation, what);
    }
  }
}

/** A process joins a meeting, or is in it. */
function partyOf(meeting: Meeting, { process: { name } }: Actor): Party {
  return entryOf(meeting, name, () => ({ name, begun: 0, passed: 0, generation: undefined }));
}
