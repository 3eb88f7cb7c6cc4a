import { CyclicBarrier } from "../../../src/sync/index.ts";
import { Meeting } from "../checks/meetings.ts";
import type { Draw } from "../draw.ts";
import { entryOf } from "../field.ts";
import type { Process } from "../world/process.ts";
import type { World } from "../world/world.ts";
import type { Actor, SharedContext } from "./actor.ts";
import { drawOptions, drawSignal } from "./options.ts";
import type { Workload } from "./workload.ts";

/** Parties that meet at one barrier, again and again. One that gives up waiting comes back. */
export class BarrierWorkload implements Workload {
  readonly blockingKeys: readonly string[] = [];
  readonly #world: World;
  readonly #faulty: Meeting;
  /** The meeting after the faults. */
  readonly #probes: Meeting;
  /** A handle remembers which generation its party has passed. */
  readonly #barriers = new Map<Process, CyclicBarrier>();

  constructor({ world, scenario }: SharedContext, draw: Draw) {
    this.#world = world;
    this.#faulty = new Meeting(world, draw.integer(1, Math.min(3, scenario.processes)));
    this.#probes = new Meeting(world, 0);
  }

  async perform(actor: Actor): Promise<void> {
    const { process, calls, redlock } = actor;
    // The first processes are the parties; others have nothing to do here.
    if (this.#world.processes.indexOf(process) >= this.#faulty.count) return;
    const { wait: drawnWait, timeout, backoff, deadline, ttl } = drawOptions(actor);
    this.#faulty.joins(process.name);
    const parties = this.#faulty.count;
    const barrier = entryOf(
      this.#barriers,
      process,
      () => new CyclicBarrier(redlock, "shuffle", { parties }),
    );
    const signal = drawSignal(actor, ttl);
    const wait = actor.draw.pick([drawnWait, 2 * ttl]);
    const options = { wait, timeout, backoff, deadline, signal };
    this.#faulty.begins(process.name);
    const outcome = await calls.make(process, {
      counted: "barrier",
      what: "meet at the barrier",
      bound: wait + 8 * timeout,
      waits: { timeout, backoff, rounds: 8 },
      codes: ["ARRIVALS_MISSING", "NO_QUORUM"],
      run: () => barrier.arriveAndWait(process.name, options),
      signal,
    });
    if ("value" in outcome) this.#passed(this.#faulty, process, outcome.value);
  }

  /** All meet at a new barrier, three times. */
  async probe(actor: Actor, bound: number): Promise<void> {
    const { process, calls } = actor;
    this.#probes.joins(process.name);
    await actor.sleep(actor.draw.between(0, 50));
    const parties = this.#probes.size;
    this.#probes.count = parties;
    const barrier = new CyclicBarrier(actor.redlock, "probe", { parties });
    for (let round = 0; round < 3; round += 1) {
      this.#probes.begins(process.name);
      const outcome = await calls.make(process, {
        what: "probe: meet at the barrier",
        bound,
        run: () => barrier.arriveAndWait(process.name, { wait: 10 * bound }),
      });
      if ("error" in outcome) return;
      this.#passed(this.#probes, process, outcome.value);
    }
  }

  #passed(meeting: Meeting, { name }: Process, generation: number): void {
    this.#world.count("barrier passed");
    meeting.passed(name, generation);
  }
}
