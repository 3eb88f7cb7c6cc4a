import { isRedlockError } from "../../../src/index.ts";
import { CyclicBarrier } from "../../../src/sync/index.ts";
import { type Actor, drawOptions, type SharedContext } from "./actor.ts";
import type { Draw } from "./draw.ts";
import type { Process } from "./process.ts";
import type { Workload } from "./synchronizers.ts";
import type { World } from "./world.ts";

/** One party of a barrier. */
interface Party {
  /** In how many generations it has begun to arrive, and how many it has passed. */
  begun: number;
  passed: number;
  /** The number of the last generation that it has passed. */
  generation: number | undefined;
}

/** The parties of one barrier, and how many of them it waits for. */
interface Meeting {
  readonly parties: Map<Process, Party>;
  count: number;
}

/** Parties that meet at one barrier, again and again. One that gives up waiting comes back. */
export class BarrierWorkload implements Workload {
  readonly blockingKeys: readonly string[] = [];
  readonly #world: World;
  readonly #faulty: Meeting;
  /** The meeting after the faults. */
  readonly #probes: Meeting = { parties: new Map(), count: 0 };
  /** A handle remembers which generation its party has passed. */
  readonly #barriers = new Map<Process, CyclicBarrier>();

  constructor({ world, scenario }: SharedContext, draw: Draw) {
    this.#world = world;
    this.#faulty = { parties: new Map(), count: draw.integer(1, Math.min(3, scenario.processes)) };
  }

  async perform(actor: Actor): Promise<void> {
    const { process, calls } = actor;
    // The first processes are the parties; others have nothing to do here.
    if (this.#world.processes.indexOf(process) >= this.#faulty.count) return;
    const { wait: drawnWait, timeout, backoff, deadline, ttl } = drawOptions(actor);
    const party = join(this.#faulty, process);
    const barrier = this.#barrierOf(actor);
    const abort = actor.draw.chance(0.1) ? new AbortController() : undefined;
    if (abort) process.timer(actor.draw.between(0, ttl), () => abort.abort(new Error("given up")));
    const wait = actor.draw.pick([drawnWait, 2 * ttl]);
    const options = { wait, timeout, backoff, deadline, signal: abort?.signal };
    begin(party);
    const outcome = await calls.make(process, {
      what: "meet at the barrier",
      bound: wait + 8 * timeout,
      codes: ["ARRIVALS_MISSING", "NO_QUORUM"],
      run: () => barrier.arriveAndWait(process.name, options),
      isExpected: (error) => error === abort?.signal.reason,
    });
    if ("value" in outcome) this.#passed(process.name, party, this.#faulty, outcome.value);
    else {
      this.#world.count(`barrier: ${isRedlockError(outcome.error) ? outcome.error.code : "aborted"}`);
    }
  }

  /** All meet at a new barrier, three times. */
  async probe(actor: Actor, bound: number): Promise<void> {
    const { process, calls } = actor;
    const party = join(this.#probes, process);
    await actor.sleep(actor.draw.between(0, 50));
    const parties = this.#probes.parties.size;
    this.#probes.count = parties;
    const barrier = new CyclicBarrier(actor.redlock, "probe", { parties });
    for (let round = 0; round < 3; round += 1) {
      begin(party);
      const outcome = await calls.make(process, {
        what: "probe: meet at the barrier",
        bound,
        codes: [],
        run: () => barrier.arriveAndWait(process.name, { wait: 10 * bound }),
      });
      if ("error" in outcome) return;
      this.#passed(process.name, party, this.#probes, outcome.value);
    }
  }

  #barrierOf({ redlock, process }: Actor): CyclicBarrier {
    const known = this.#barriers.get(process);
    const barrier = known ?? new CyclicBarrier(redlock, "shuffle", { parties: this.#faulty.count });
    this.#barriers.set(process, barrier);
    return barrier;
  }

  /** Nobody passes before all have arrived as often, and all pass the same generations in order. */
  #passed(by: string, party: Party, { parties, count }: Meeting, generation: number): void {
    const world = this.#world;
    party.passed += 1;
    world.count("barrier passed");
    const here = [...parties.values()].filter(({ begun }) => begun >= party.passed);
    if (count > 1) {
      world.check(
        "a barrier waits for all",
        here.length >= count,
        () => `${by} passes for the ${party.passed}. time, ${here.length} of ${count} have arrived as often`,
      );
    }
    const before = party.generation ?? generation - 1;
    if (party.generation !== undefined) {
      const what = () => `${by} passed ${generation} after ${before}`;
      world.check("generations follow", generation === before + 1, what);
    }
    party.generation = generation;
    for (const other of parties.values()) {
      if (other === party || other.passed !== party.passed) continue;
      const what = () => `${by} passed ${generation}, another ${other.generation}`;
      world.check("generations follow", other.generation === generation, what);
    }
  }
}

function join({ parties }: Meeting, process: Process): Party {
  const party = parties.get(process) ?? { begun: 0, passed: 0, generation: undefined };
  parties.set(process, party);
  return party;
}

/** A party calls for the generation that it has not passed yet. A repeated call counts once. */
function begin(party: Party): void {
  party.begun = party.passed + 1;
}
