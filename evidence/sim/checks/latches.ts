import { entryOf } from "../field.ts";
import type { World } from "../world/world.ts";

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
export interface LatchCall {
  readonly name: string;
  readonly count: number;
  readonly by: string;
  readonly invoked: number;
}

/** What has happened to the latches of a world, with the checks of it. */
export class LatchHistories {
  readonly #world: Pick<World, "check" | "now">;
  readonly #histories = new Map<string, LatchHistory>();

  constructor(world: Pick<World, "check" | "now">) {
    this.#world = world;
  }

  /** An id begins to arrive. */
  begins(name: string, id: string): void {
    this.#historyOf(name).begun.add(id);
  }

  #historyOf(name: string): LatchHistory {
    const none = { open: undefined, complete: undefined };
    return entryOf(this.#histories, name, () => ({ begun: new Set(), arrived: new Set(), ...none }));
  }

  /** Checks what a call returned: opened by all, and never closed again. */
  returned({ name, count, by, invoked }: LatchCall, isOpen: boolean): void {
    const world = this.#world;
    const history = this.#historyOf(name);
    const { open = Infinity, complete = Infinity } = history;
    if (open < invoked) {
      const what = () => `${by}: ${name} is closed, it was open at ${open.toFixed()}`;
      world.check("an open latch stays open", isOpen, what);
    }
    if (complete < invoked) {
      const what = () => `${by}: ${name} is closed, all had arrived at ${complete.toFixed()}`;
      world.check("arrivals count", isOpen, what);
    }
    if (isOpen) {
      world.check(
        "a latch opens with the last",
        history.begun.size >= count,
        () => `${by}: ${name} is open with ${[...history.begun]} of ${count}`,
      );
      history.open ??= world.now;
    }
  }

  /** An arrival was confirmed. When all are, one of those calls must have returned that the latch is open. */
  arrived({ name, count }: LatchCall, id: string): void {
    const history = this.#historyOf(name);
    history.arrived.add(id);
    if (history.arrived.size < count) return;
    history.complete ??= this.#world.now;
    const what = () => `all have arrived at ${name}, and no call returned that it is open`;
    this.#world.check("arrivals count", history.open !== undefined, what);
  }
}
