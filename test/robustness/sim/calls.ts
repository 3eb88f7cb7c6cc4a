import { isRedlockError, type RedlockErrorCode } from "../../../src/errors.ts";
import type { Process } from "./process.ts";
import type { World } from "./world.ts";

/** What a call came to. */
export type Outcome<Value> = { readonly value: Value } | { readonly error: unknown };

/** A call under way. */
interface Pending {
  readonly process: Process;
  readonly what: string;
  readonly invoked: number;
  readonly pausedBefore: number;
  readonly bound: number;
}

/** Calls that processes make, each of which has to end in time. */
export class Calls {
  readonly #world: World;
  readonly #pending = new Set<Pending>();

  constructor(world: World) {
    this.#world = world;
  }

  /**
   * Makes a call and waits for it.
   *
   * @param bound ms, by right clocks, within which it must end; times at which its process is paused do not count
   * @param expected an error that is an answer, beside those with one of the `codes`
   */
  async make<Value>(
    process: Process,
    what: string,
    bound: number,
    codes: readonly RedlockErrorCode[],
    call: () => Promise<Value>,
    expected: (error: unknown) => boolean = () => false,
  ): Promise<Outcome<Value>> {
    const world = this.#world;
    const pausedBefore = process.pausedFor;
    // Clocks may be slow, and timers late.
    const pending = { process, what, invoked: world.now, pausedBefore, bound: bound * 1.25 + 60 };
    this.#pending.add(pending);
    world.count("operations");
    world.trace(() => `${process.name} ${what}`);
    let outcome: Outcome<Value>;
    try {
      outcome = { value: await call() };
      world.trace(() => `${process.name} ${what}: done`);
    } catch (error) {
      outcome = { error };
      world.trace(() => `${process.name} ${what}: ${String(error)}`);
      const code = isRedlockError(error) ? error.code : undefined;
      if (!(code && codes.includes(code)) && !expected(error)) {
        world.violate("calls end", `${process.name}: ${what} rejected with ${String(error)}`);
      }
    }
    this.#pending.delete(pending);
    this.#check(pending);
    return outcome;
  }

  /** How many calls of living processes are under way. */
  get underWay(): number {
    return [...this.#pending].filter(({ process }) => process.alive).length;
  }

  /** Looks for calls that have not ended. */
  conclude(): void {
    for (const pending of this.#pending) {
      if (!pending.process.alive) continue;
      this.#world.violate("calls end", `${pending.process.name}: ${pending.what} has not ended`);
    }
  }

  #check({ process, what, invoked, pausedBefore, bound }: Pending): void {
    const took = this.#world.now - invoked - (process.pausedFor - pausedBefore);
    if (took <= bound) return;
    this.#world.violate(
      "calls end",
      `${process.name}: ${what} took ${took.toFixed()} ms, bound ${bound.toFixed()}`,
    );
  }
}
