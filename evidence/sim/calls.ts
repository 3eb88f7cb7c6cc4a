import { isRedlockError, type RedlockErrorCode } from "../../src/index.ts";
import type { Process } from "./process.ts";
import type { WakeUps } from "./wake-ups.ts";
import type { World } from "./world.ts";

/** The outcome of a call: its value, or the error it rejected with. */
export type Outcome<Value> = { readonly value: Value } | { readonly error: unknown };

/** One call of the library, and how it may end. */
export interface Call<Value> {
  /** For the trace and for violations. */
  readonly what: string;
  /**
   * ms, by an exact clock, within which the call must end. Time for which its process is paused does not count.
   */
  readonly bound: number;
  /** Codes of the errors that it may reject with. */
  readonly codes: readonly RedlockErrorCode[];
  readonly run: () => Promise<Value>;
  /** Whether an error without one of the `codes` is expected, too. Default: none is. */
  readonly isExpected?: (error: unknown) => boolean;
}

/** A call under way. */
interface Pending {
  readonly process: Process;
  readonly what: string;
  readonly invoked: number;
  readonly pausedBefore: number;
  readonly bound: number;
}

/** Makes the processes' calls, and checks that each ends in time and with an error that is allowed. */
export class Calls {
  readonly #world: World;
  readonly #wakeUps: WakeUps;
  readonly #pending = new Set<Pending>();

  constructor(world: World, wakeUps: WakeUps) {
    this.#world = world;
    this.#wakeUps = wakeUps;
  }

  /** Makes a call and waits for its outcome. Never rejects. */
  async make<Value>(process: Process, call: Call<Value>): Promise<Outcome<Value>> {
    const { what, bound, codes, run, isExpected = () => false } = call;
    const world = this.#world;
    const pausedBefore = process.pausedFor;
    // Clocks may be slow and timers late. A process that was paused waits for a quarter of a timeout more.
    const pending = { process, what, invoked: world.now, pausedBefore, bound: bound * 1.5 + 60 };
    this.#pending.add(pending);
    world.count("operations");
    world.trace(() => `${process.name} ${what}`);
    let outcome: Outcome<Value>;
    try {
      outcome = { value: await run() };
      world.trace(() => `${process.name} ${what}: done`);
    } catch (error) {
      outcome = { error };
      world.trace(() => `${process.name} ${what}: ${String(error)}`);
      const code = isRedlockError(error) ? error.code : undefined;
      const isAllowed = (code !== undefined && codes.includes(code)) || isExpected(error);
      world.check("calls end", isAllowed, () => `${process.name}: ${what} rejected with ${String(error)}`);
    }
    this.#pending.delete(pending);
    const isOver = () => ![...this.#pending].some((other) => other.process === process);
    if (this.#wakeUps.isListening(process) && isOver()) this.#wakeUps.checkClosed(process);
    this.#checkDuration(pending);
    return outcome;
  }

  /** Reports every call of a living process that has not ended. */
  checkAtEnd(): void {
    for (const process of this.#world.processes) {
      if (process.alive && this.#wakeUps.isListening(process)) this.#wakeUps.checkClosed(process);
    }
    for (const pending of this.#pending) {
      if (!pending.process.alive) continue;
      this.#world.violate("calls end", `${pending.process.name}: ${pending.what} has not ended`);
    }
  }

  #checkDuration({ process, what, invoked, pausedBefore, bound }: Pending): void {
    const took = this.#world.now - invoked - (process.pausedFor - pausedBefore);
    this.#world.check(
      "calls end",
      took <= bound,
      () => `${process.name}: ${what} took ${took.toFixed()} ms, bound ${bound.toFixed()}`,
    );
  }
}
