import { singleFlight } from "../../../src/idempotency/index.ts";
import { entryOf } from "../field.ts";
import type { Actor } from "./actor.ts";
import { drawOptions } from "./options.ts";
import type { Workload } from "./workload.ts";

/** Values of keys that many compute at once, or share. Runs have the same names. */
export class FlightWorkload implements Workload {
  /** By key: what its computations have returned. */
  readonly #computed = new Map<string, Set<string>>();
  #serial = 0;

  async perform(actor: Actor): Promise<void> {
    const { world, draw, process, redlock, calls } = actor;
    const key = draw.pick(["k1", "k2", "k3"]);
    const { ttl: lease, wait } = drawOptions(actor);
    const timeout = Math.min(1_000, lease / 3);
    process.timeout = timeout;
    const ttl = draw.pick([0, lease, 20 * lease]);
    const length = draw.between(0, draw.chance(0.3) ? 3 : 0.8) * lease;
    const failure = draw.chance(0.3) ? new Error("the computation failed") : undefined;
    let computed: string | undefined;
    const outcome = await calls.make(process, {
      counted: "flight",
      what: `flight ${key} ${JSON.stringify({ lease, wait, ttl })}`,
      // What is too old is forgotten, and what another caller has taken over is asked for again.
      bound: 3 * (wait + length) + 40 * timeout,
      codes: ["IN_PROGRESS", "NO_QUORUM"],
      failure,
      run: () =>
        singleFlight(redlock, key, { scope: "sim", lease, wait, ttl }, async () => {
          await actor.sleep(length);
          if (failure) throw failure;
          computed = this.#computes(key);
          return computed;
        }),
    });
    if ("error" in outcome) return;
    const { value } = outcome;
    world.count(value === computed ? "flight computed" : "flight shared");
    const isOwn = this.#computed.get(key)?.has(value as string) === true;
    const what = () => `${process.name} got ${JSON.stringify(value)}, which no flight of ${key} has computed`;
    world.check("replays agree", isOwn, what, []);
  }

  /** A value that no other computation returns. */
  #computes(key: string): string {
    this.#serial += 1;
    const value = `flight ${this.#serial}`;
    entryOf(this.#computed, key, () => new Set()).add(value);
    return value;
  }
}
