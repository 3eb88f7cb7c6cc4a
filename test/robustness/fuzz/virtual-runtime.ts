import { setImmediate } from "node:timers/promises";
import { type Runtime, systemRuntime } from "../../../src/runtime.ts";

/** The outcome of a call. */
export type Outcome<Value> = { readonly value: Value } | { readonly error: unknown };

/** A runtime whose time advances only while nothing else can happen. */
export interface VirtualRuntime extends Runtime {
  /**
   * Makes a call, and lets time pass until it has settled.
   *
   * @param limit ms of virtual time; default 60 000
   * @throws Error when the call has not settled by then
   */
  settle<Value>(call: () => Promise<Value>, limit?: number): Promise<Outcome<Value>>;
  /** Fires all timers that are due within `ms`, and those that they set. */
  drain(ms: number): Promise<void>;
}

// Turns of the event loop within which a stubbed answer, with its stream, is read to its end.
const turns = 3;

/** Time begins at a present date, so that clocks of the engine and fences have realistic values. */
export function virtualRuntime(): VirtualRuntime {
  return new VirtualTime();
}

interface Timer {
  readonly at: number;
  readonly callback: () => void;
}

class VirtualTime implements VirtualRuntime {
  readonly random: Runtime["random"] = systemRuntime.random;
  readonly randomBytes: Runtime["randomBytes"] = systemRuntime.randomBytes;
  #time = 0;
  readonly #timers = new Set<Timer>();

  readonly now = (): number => 1_763_714_567_890 + this.#time;

  readonly monotonic = (): number => this.#time;

  readonly timer = (ms: number, callback: () => void): (() => void) => {
    // As platforms do: NaN is no delay at all.
    const timer = { at: this.#time + Math.max(0, ms || 0), callback };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  };

  async settle<Value>(call: () => Promise<Value>, limit = 60_000): Promise<Outcome<Value>> {
    const until = this.#time + limit;
    let outcome: Outcome<Value> | undefined;
    // A call that throws instead of rejecting has settled, too.
    void (async () => call())().then(
      (value) => {
        outcome = { value };
      },
      (error: unknown) => {
        outcome = { error };
      },
    );
    for (let fired = 0, busy = performance.now(); ; ) {
      await quiet();
      if (outcome) return outcome;
      if (this.#fireNext(until)) {
        fired += 1;
        busy = performance.now();
      }
      // Timers that fire while time stands still are a tight loop.
      if (fired > 6_000) throw new Error(`a call goes on and on, at ${this.#time} ms`);
      // Threads compute hashes in real time: only these may take a while.
      if (performance.now() - busy > 5_000) throw new Error(`a call hangs: not settled ${limit} ms later`);
    }
  }

  async drain(ms: number): Promise<void> {
    const until = this.#time + ms;
    await quiet();
    while (this.#fireNext(until)) await quiet();
    this.#time = until;
  }

  /** Fires the next timer that is due by `until`. False: there is none. */
  #fireNext(until: number): boolean {
    let next: Timer | undefined;
    for (const timer of this.#timers) if (!next || timer.at < next.at) next = timer;
    if (!next || next.at > until) return false;
    this.#timers.delete(next);
    this.#time = Math.max(this.#time, next.at);
    next.callback();
    return true;
  }
}

async function quiet(): Promise<void> {
  for (let turn = 0; turn < turns; turn++) await setImmediate();
}
