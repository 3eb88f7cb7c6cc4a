import type { World } from "../world/world.ts";

/** ms that Redis rounds off. */
export const rounding = 1;

/** What remaining times that endpoints return depend on. */
export const byClocks = ["bounded drift"] as const;

/** A run that has begun, and the least span of true time in which its interval keeps others away. */
interface Run {
  readonly by: string;
  readonly until: number;
}

/** One call of `once`. */
export interface OnceCall {
  /** The client. */
  readonly by: string;
  /** When it was made, in virtual ms. */
  readonly invoked: number;
  /** The interval, in ms. */
  readonly every: number;
}

/** The runs of one name, with the checks of them. */
export class OnceHistories {
  readonly #world: Pick<World, "check" | "now">;
  readonly #fastest: number;
  readonly #runs: Run[] = [];

  /** @param fastest how many ms pass in truth while the fastest endpoint's clock counts one */
  constructor(world: Pick<World, "check" | "now">, fastest: number) {
    this.#world = world;
    this.#fastest = fastest;
  }

  /**
   * A routine begins: no other run's interval lasts, or has ended only while this call waited.
   *
   * @param stored when the first endpoint stored the run
   * @param transit ms for which the call's last request may have been on its way
   */
  begins({ by, invoked, every }: OnceCall, stored: number, transit: number): void {
    const world = this.#world;
    for (const { by: other, until } of this.#runs) {
      const isOver = world.now >= until;
      const what = () => `${by} runs; the interval of ${other} lasts until ${until.toFixed()}`;
      world.check("one run per interval", isOver, what);
      if (!isOver) continue;
      // Otherwise it asked an endpoint within that interval, and asked again when it was over.
      const isEarlier = invoked + transit >= until;
      const called = () =>
        `${by} runs, and called at ${invoked.toFixed()}; the interval of ${other} lasted until ${until.toFixed()}`;
      world.check("one run per tick", isEarlier, called);
    }
    this.#runs.push({ by, until: stored + every * this.#fastest - rounding });
  }

  /**
   * A call ended without a run.
   *
   * @param retryAfter when to try again, in ms
   */
  skipped({ by, every }: OnceCall, retryAfter: number): void {
    const isTrue = retryAfter > 0 && retryAfter <= every + rounding;
    const what = () => `${by} is to try again in ${retryAfter} ms`;
    this.#world.check("refusals are true", isTrue, what, byClocks);
  }
}
