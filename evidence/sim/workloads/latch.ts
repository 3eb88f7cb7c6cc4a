import { CountDownLatch, type LatchState } from "../../../src/sync/index.ts";
import { type LatchCall, LatchHistories } from "../checks/latches.ts";
import type { Draw } from "../draw.ts";
import type { World } from "../world/world.ts";
import type { Actor, SharedContext } from "./actor.ts";
import { drawOptions, drawSignal } from "./options.ts";
import type { Workload } from "./workload.ts";

/** Latches, one after another, at which processes arrive under ids that others use as well. */
export class LatchWorkload implements Workload {
  readonly blockingKeys: readonly string[] = [];
  readonly #world: World;
  /** ms for which processes arrive at one latch, before they go on to the next. */
  readonly #era: number;
  readonly #count: number;
  /** Whether all probes start at the same moment: then each may arrive first at another endpoint. */
  readonly #together: boolean;
  readonly #histories: LatchHistories;
  #probes = 0;

  constructor({ world, scenario }: SharedContext, draw: Draw) {
    this.#world = world;
    this.#histories = new LatchHistories(world);
    this.#era = 4 * scenario.ttl;
    this.#count = draw.integer(1, 4);
    this.#together = draw.chance(0.6);
  }

  async perform(actor: Actor): Promise<void> {
    const { process, redlock, calls, draw } = actor;
    const count = this.#count;
    const { wait, timeout, backoff, deadline, ttl } = drawOptions(actor);
    const name = `parts-${Math.floor(this.#world.now / this.#era) - (draw.chance(0.3) ? 1 : 0)}`;
    const signal = drawSignal(actor, ttl);
    const options = { wait, timeout, backoff, deadline, signal };
    const latch = new CountDownLatch(redlock, name, { count });
    const id = `part ${draw.integer(1, count)}`;
    const how = draw.pick(["arrive", "arrive", "arrive", "inspect", "wait"] as const);
    if (how === "arrive") this.#histories.begins(name, id);
    const call: LatchCall = { name, count, by: process.name, invoked: this.#world.now };
    const outcome = await calls.make(process, {
      counted: "latch",
      what: `${how} ${name} ${how === "arrive" ? id : ""}`,
      bound: wait + 8 * timeout,
      waits: { timeout, backoff, rounds: 8 },
      codes: ["ARRIVALS_MISSING", "NO_QUORUM"],
      run: async () => {
        if (how === "arrive") return latch.arrive(id, options);
        if (how === "inspect") return latch.inspect(options);
        await latch.wait(options);
        return opened(count);
      },
      signal,
    });
    if ("error" in outcome) return;
    this.#check(call, outcome.value);
    if (how === "arrive") this.#histories.arrived(call, id);
  }

  /** All arrive at a new latch, and wait until it opens. */
  async probe(actor: Actor, bound: number): Promise<void> {
    const { process, redlock, calls } = actor;
    this.#probes += 1;
    await actor.sleep(this.#together ? 0 : actor.draw.between(0, 50));
    const name = "probe";
    const by = process.name;
    const latch = new CountDownLatch(redlock, name, { count: this.#probes, wait: 10 * bound });
    this.#histories.begins(name, by);
    const invoked = this.#world.now;
    // The others may join while this one is under way.
    const call = (): LatchCall => ({ name, count: this.#probes, by, invoked });
    const outcome = await calls.make(process, {
      what: "probe: arrive at the latch",
      bound,
      run: async () => {
        const state = await latch.arrive(by);
        this.#check(call(), state);
        this.#histories.arrived(call(), by);
        await latch.wait();
      },
    });
    if ("value" in outcome) this.#check(call(), opened(this.#probes));
  }

  #check(call: LatchCall, state: LatchState): void {
    this.#world.count(state.open ? "latch open" : "latch closed");
    this.#histories.returned(call, state.open);
  }
}

function opened(count: number): LatchState {
  return { open: true, arrived: count, remaining: 0 };
}
