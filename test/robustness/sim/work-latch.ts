import { isRedlockError } from "../../../src/index.ts";
import { CountDownLatch, type LatchState } from "../../../src/sync/index.ts";
import { type Actor, drawOptions, type SharedContext } from "./actor.ts";
import type { Draw } from "./draw.ts";
import type { Workload } from "./synchronizers.ts";
import type { World } from "./world.ts";

/** What has happened to one latch. Times are virtual ms. */
interface LatchHistory {
  /** The ids that have begun to arrive, and those whose arrival was confirmed. */
  readonly begun: Set<string>;
  readonly arrived: Set<string>;
  /** Since when a call has returned that it is open. */
  open: number | undefined;
  /** Since when the arrivals of all ids are confirmed. */
  complete: number | undefined;
}

/** A call at a latch: the latch, the count that opens it, who called, and when. */
interface LatchCall {
  readonly name: string;
  readonly count: number;
  readonly by: string;
  readonly invoked: number;
}

/** Latches, one after another, at which processes arrive under ids that others use as well. */
export class LatchWorkload implements Workload {
  readonly blockingKeys: readonly string[] = [];
  readonly #world: World;
  /** ms for which processes arrive at one latch, before they go on to the next. */
  readonly #era: number;
  readonly #count: number;
  /** Whether all probes start at the same moment: then each may arrive first at another endpoint. */
  readonly #together: boolean;
  readonly #histories = new Map<string, LatchHistory>();
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
    const abort = draw.chance(0.1) ? new AbortController() : undefined;
    if (abort) process.timer(draw.between(0, ttl), () => abort.abort(new Error("given up")));
    const options = { wait, timeout, backoff, deadline, signal: abort?.signal };
    const latch = new CountDownLatch(redlock, name, { count });
    const id = `part ${draw.integer(1, count)}`;
    const how = draw.pick(["arrive", "arrive", "arrive", "inspect", "wait"] as const);
    if (how === "arrive") this.#historyOf(name).begun.add(id);
    const call: LatchCall = { name, count, by: process.name, invoked: this.#world.now };
    const outcome = await calls.make(process, {
      what: `${how} ${name} ${how === "arrive" ? id : ""}`,
      bound: wait + 8 * timeout,
      codes: ["ARRIVALS_MISSING", "NO_QUORUM"],
      run: async () => {
        if (how === "arrive") return latch.arrive(id, options);
        if (how === "inspect") return latch.inspect(options);
        await latch.wait(options);
        return opened(count);
      },
      isExpected: (error) => error === abort?.signal.reason,
    });
    if ("error" in outcome) {
      this.#world.count(`latch: ${isRedlockError(outcome.error) ? outcome.error.code : "aborted"}`);
      return;
    }
    this.#checkState(call, outcome.value);
    if (how === "arrive") this.#arrived(call, id);
  }

  /** All arrive at a new latch, and wait until it opens. */
  async probe(actor: Actor, bound: number): Promise<void> {
    const { process, redlock, calls } = actor;
    this.#probes += 1;
    await actor.sleep(this.#together ? 0 : actor.draw.between(0, 50));
    const name = "probe";
    const by = process.name;
    const latch = new CountDownLatch(redlock, name, { count: this.#probes, wait: 10 * bound });
    this.#historyOf(name).begun.add(by);
    const invoked = this.#world.now;
    // The others may join while this one is under way.
    const call = (): LatchCall => ({ name, count: this.#probes, by, invoked });
    const outcome = await calls.make(process, {
      what: "probe: arrive at the latch",
      bound,
      codes: [],
      run: async () => {
        const state = await latch.arrive(by);
        this.#checkState(call(), state);
        this.#arrived(call(), by);
        await latch.wait();
      },
    });
    if ("value" in outcome) this.#checkState(call(), opened(this.#probes));
  }

  #historyOf(name: string): LatchHistory {
    let history = this.#histories.get(name);
    if (!history) {
      history = { begun: new Set(), arrived: new Set(), open: undefined, complete: undefined };
      this.#histories.set(name, history);
    }
    return history;
  }

  /** Checks the state that a call returned: opened by all, and never closed again. */
  #checkState({ name, count, by, invoked }: LatchCall, state: LatchState): void {
    const world = this.#world;
    const history = this.#historyOf(name);
    world.count(state.open ? "latch open" : "latch closed");
    const { open = Infinity, complete = Infinity } = history;
    if (open < invoked) {
      const what = () => `${by}: ${name} is closed, it was open at ${open.toFixed()}`;
      world.check("an open latch stays open", state.open, what);
    }
    if (complete < invoked) {
      const what = () => `${by}: ${name} is closed, all had arrived at ${complete.toFixed()}`;
      world.check("arrivals count", state.open, what);
    }
    if (state.open) {
      world.check(
        "a latch opens with the last",
        history.begun.size >= count,
        () => `${by}: ${name} is open with ${[...history.begun]} of ${count}`,
      );
      history.open ??= world.now;
    }
  }

  /** An arrival was confirmed. When all are, one of those calls must have returned that the latch is open. */
  #arrived({ name, count }: LatchCall, id: string): void {
    const history = this.#historyOf(name);
    history.arrived.add(id);
    if (history.arrived.size < count) return;
    history.complete ??= this.#world.now;
    const what = () => `all have arrived at ${name}, and no call returned that it is open`;
    this.#world.check("arrivals count", history.open !== undefined, what);
  }
}

function opened(count: number): LatchState {
  return { open: true, arrived: count, remaining: 0 };
}
