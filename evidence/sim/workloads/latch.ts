import { CountDownLatch } from "../../../src/sync/index.ts";
import type { Draw } from "../draw.ts";
import { entryOf } from "../field.ts";
import type { World } from "../world/world.ts";
import type { Actor, SharedContext } from "./actor.ts";
import { drawOptions, drawSignal } from "./options.ts";
import type { Workload } from "./workload.ts";

/** What has happened to one latch. Times are virtual ms. */
class Latch {
  /** The ids that have begun to arrive, and those whose arrival was confirmed. */
  readonly begun = new Set<string>();
  readonly arrived = new Set<string>();
  /** Since when a call has returned that it is open. */
  open = Infinity;
  /** Since when the arrivals of all ids are confirmed. */
  complete = Infinity;
}

/** A call at a latch. `count`: how many ids open it. */
interface LatchCall {
  readonly name: string;
  readonly count: number;
  readonly by: string;
  readonly invoked: number;
}

/** Latches, one after another, at which processes arrive under ids that others use as well. */
export class LatchWorkload implements Workload {
  readonly #world: World;
  /** ms for which processes arrive at one latch, before they go on to the next. */
  readonly #era: number;
  readonly #count: number;
  /** Whether all probes start at the same moment: then each may arrive first at another endpoint. */
  readonly #together: boolean;
  readonly #latches = new Map<string, Latch>();
  #probes = 0;

  constructor({ world, scenario }: SharedContext, draw: Draw) {
    this.#world = world;
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
    const call = { name, count, by: process.name, invoked: this.#world.now };
    if (how === "arrive") this.#latchOf(name).begun.add(id);
    const outcome = await calls.make(process, {
      counted: "latch",
      what: `${how} ${name} ${how === "arrive" ? id : ""}`,
      bound: wait + 8 * timeout,
      waits: { timeout, backoff, rounds: 8 },
      codes: ["ARRIVALS_MISSING", "NO_QUORUM"],
      run: async () => {
        if (how === "arrive") return (await latch.arrive(id, options)).open;
        if (how === "inspect") return (await latch.inspect(options)).open;
        await latch.wait(options);
        return true;
      },
      signal,
    });
    if ("error" in outcome) return;
    this.#returned(call, outcome.value);
    if (how === "arrive") this.#arrived(call, id);
  }

  /** All arrive at a new latch, and wait until it opens. */
  async probe(actor: Actor, bound: number): Promise<void> {
    const { process, redlock, calls } = actor;
    this.#probes += 1;
    await actor.sleep(this.#together ? 0 : actor.draw.between(0, 50));
    const [name, by] = ["probe", process.name];
    const latch = new CountDownLatch(redlock, name, { count: this.#probes, wait: 10 * bound });
    this.#latchOf(name).begun.add(by);
    const invoked = this.#world.now;
    // The others may join while this one is under way.
    const call = () => ({ name, count: this.#probes, by, invoked });
    const outcome = await calls.make(process, {
      what: "probe: arrive at the latch",
      bound,
      run: async () => {
        const { open } = await latch.arrive(by);
        this.#returned(call(), open);
        this.#arrived(call(), by);
        await latch.wait();
      },
    });
    if ("value" in outcome) this.#returned(call(), true);
  }

  #latchOf(name: string): Latch {
    return entryOf(this.#latches, name, () => new Latch());
  }

  /** Checks what a call returned: opened by all, and never closed again. */
  #returned({ name, count, by, invoked }: LatchCall, isOpen: boolean): void {
    const world = this.#world;
    const latch = this.#latchOf(name);
    const { open, complete, begun } = latch;
    world.count(isOpen ? "latch open" : "latch closed");
    if (open < invoked) {
      const what = () => `${by}: ${name} is closed, it was open at ${open.toFixed()}`;
      world.check("an open latch stays open", isOpen, what);
    }
    if (complete < invoked) {
      const what = () => `${by}: ${name} is closed, all had arrived at ${complete.toFixed()}`;
      world.check("arrivals count", isOpen, what);
    }
    if (!isOpen) return;
    const what = () => `${by}: ${name} is open with ${[...begun]} of ${count}`;
    world.check("a latch opens with the last", begun.size >= count, what);
    latch.open = Math.min(open, world.now);
  }

  /** An arrival was confirmed. When all are, one of those calls must have returned that the latch is open. */
  #arrived({ name, count }: LatchCall, id: string): void {
    const latch = this.#latchOf(name);
    latch.arrived.add(id);
    if (latch.arrived.size < count) return;
    latch.complete = Math.min(latch.complete, this.#world.now);
    const what = () => `all have arrived at ${name}, and no call returned that it is open`;
    this.#world.check("arrivals count", latch.open < Infinity, what);
  }
}
