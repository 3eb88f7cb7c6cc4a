import { isRedlockError, type RedlockErrorCode } from "../../../src/index.ts";
import type { WaitingLimits, WakeUps } from "../wire/wake-ups.ts";
import type { Process } from "../world/process.ts";
import type { World } from "../world/world.ts";

/** The outcome of a call: its value, or the error it rejected with. */
export type Outcome<Value> = { readonly value: Value } | { readonly error: unknown };

/** One call of the library, and how it may end. */
export interface Call<Value> {
  /** What it is counted as, for example `once`: `once: NO_QUORUM`, `once: aborted`, `once: threw`. Default: it is not. */
  readonly counted?: string;
  /** For the trace and for violations. */
  readonly what: string;
  /**
   * ms, by an exact clock, within which the call must end. Time for which its process is paused does not count.
   */
  readonly bound: number;
  /** What it keeps to while it waits. Default: it does not wait, or is not observed. */
  readonly waits?: WaitingLimits | undefined;
  /** Codes of the errors that it may reject with. Default: it must not reject. */
  readonly codes?: readonly RedlockErrorCode[];
  readonly run: () => Promise<Value>;
  /** The caller's signal, whose reason it may reject with. */
  readonly signal?: AbortSignal | undefined;
  /** What its routine throws, and the call with it. */
  readonly failure?: Error | undefined;
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
    const { what, bound } = call;
    const world = this.#world;
    const pausedBefore = process.pausedFor;
    const hasWaited = call.waits && this.#wakeUps.begin(process, call.waits);
    // Clocks may be slow and timers late. A process that was paused waits for a quarter of a timeout more.
    const pending = { process, what, invoked: world.now, pausedBefore, bound: bound * 1.5 + 60 };
    this.#pending.add(pending);
    world.count("operations");
    world.trace(() => `${process.name} ${what}`);
    let outcome: Outcome<Value>;
    try {
      outcome = { value: await call.run() };
      world.trace(() => `${process.name} ${what}: done`);
    } catch (error) {
      outcome = { error };
      world.trace(() => `${process.name} ${what}: ${String(error)}`);
      this.#checkError(process, call, error);
    }
    this.#pending.delete(pending);
    hasWaited?.();
    const isOver = () => ![...this.#pending].some((other) => other.process === process);
    if (this.#wakeUps.isListening(process) && isOver()) this.#wakeUps.checkClosed(process);
    this.#checkDuration(pending);
    return outcome;
  }

  #checkError(process: Process, call: Call<unknown>, error: unknown): void {
    const { what, counted, codes = [], signal, failure, isExpected = (each) => each === failure } = call;
    const code = isRedlockError(error) && codes.includes(error.code) ? error.code : undefined;
    const isAbort = signal?.aborted && error === signal.reason;
    const kind = isAbort ? "aborted" : isExpected(error) ? "threw" : code;
    const detail = () => `${process.name}: ${what} rejected with ${String(error)}`;
    this.#world.check("calls end", kind !== undefined, detail);
    if (counted) this.#world.count(`${counted}: ${kind}`);
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
    const detail = () => `${process.name}: ${what} took ${took.toFixed()} ms, bound ${bound.toFixed()}`;
    this.#world.check("calls end", took <= bound, detail);
  }
}
