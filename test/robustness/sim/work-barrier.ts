import { isRedlockError } from "../../../src/index.ts";
import { CyclicBarrier } from "../../../src/sync/index.ts";
import { type Actor, drawOptions, type Stage } from "./actor.ts";
import type { Draw } from "./draw.ts";
import type { Process } from "./process.ts";
import type { Workload } from "./synchronizers.ts";

/** One party of a barrier. */
interface Party {
  /** How many generations it has begun to arrive in, and passed. */
  begun: number;
  passed: number;
  /** The number of the last one that it has passed. */
  generation: number | undefined;
}

/** Parties that meet at one barrier, again and again; one that gives up waiting comes back. */
export function barrierWorkload({ world, scenario }: Stage, draw: Draw): Workload {
  const size = draw.integer(1, Math.min(3, scenario.processes));
  const parties = new Map<Process, Party>();
  const turns = new Map<Process, Party>();
  const barriers = new Map<Process, CyclicBarrier>();

  function enrol(among: Map<Process, Party>, process: Process): Party {
    const party = among.get(process) ?? { begun: 0, passed: 0, generation: undefined };
    among.set(process, party);
    return party;
  }

  /** It remembers where its party stands. */
  function barrierOf({ redlock, process }: Actor): CyclicBarrier {
    const barrier = barriers.get(process) ?? new CyclicBarrier(redlock, "shuffle", { parties: size });
    barriers.set(process, barrier);
    return barrier;
  }

  /** A call was made for the generation that the party has not passed yet. */
  function begin(party: Party): void {
    party.begun = party.passed + 1;
  }

  function pass(
    by: string,
    party: Party,
    among: ReadonlyMap<Process, Party>,
    count: number,
    generation: number,
  ): void {
    party.passed += 1;
    world.count("barrier passed");
    const here = [...among.values()].filter(({ begun }) => begun >= party.passed);
    if (here.length < count) {
      world.violate(
        "a barrier waits for all",
        `${by} passes for the ${party.passed}. time, ${here.length} of ${count} have arrived as often`,
      );
    }
    if (party.generation !== undefined && generation !== party.generation + 1) {
      world.violate("generations follow", `${by} passed ${generation} after ${party.generation}`);
    }
    party.generation = generation;
    for (const other of among.values()) {
      if (other.passed !== party.passed || other.generation === generation) continue;
      world.violate("generations follow", `${by} passed ${generation}, another ${other.generation}`);
    }
  }

  async function perform(actor: Actor): Promise<void> {
    const { process, calls } = actor;
    // The first processes are the parties; others have nothing to do here.
    if (world.processes.indexOf(process) >= size) return;
    const { wait, timeout, backoff, deadline, ttl } = drawOptions(actor);
    const party = enrol(parties, process);
    const barrier = barrierOf(actor);
    const abort = actor.draw.chance(0.1) ? new AbortController() : undefined;
    if (abort) process.timer(actor.draw.between(0, ttl), () => abort.abort(new Error("given up")));
    const patience = actor.draw.pick([wait, 2 * ttl]);
    const options = { wait: patience, timeout, backoff, deadline, signal: abort?.signal };
    begin(party);
    const outcome = await calls.make(
      process,
      "meet at the barrier",
      patience + 8 * timeout,
      ["ARRIVALS_MISSING", "NO_QUORUM"],
      () => barrier.arriveAndWait(process.name, options),
      (error) => error === abort?.signal.reason,
    );
    if ("value" in outcome) pass(process.name, party, parties, size, outcome.value);
    else world.count(`barrier: ${isRedlockError(outcome.error) ? outcome.error.code : "aborted"}`);
  }

  /** All meet at a new one, three times. */
  async function turn(actor: Actor, bound: number): Promise<void> {
    const { process, calls } = actor;
    const party = enrol(turns, process);
    await actor.sleep(actor.draw.between(0, 50));
    const count = turns.size;
    const barrier = new CyclicBarrier(actor.redlock, "turn", { parties: count });
    for (let left = 3; left > 0; left -= 1) {
      begin(party);
      const outcome = await calls.make(process, "turn at the barrier", bound, [], () =>
        barrier.arriveAndWait(process.name, { wait: 10 * bound }),
      );
      if ("error" in outcome) return;
      pass(process.name, party, turns, count, outcome.value);
    }
  }

  return { perform, turn, leftovers: [], look: () => undefined, conclude: () => undefined };
}
