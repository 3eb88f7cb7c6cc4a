import { setImmediate } from "node:timers/promises";
import type { Runtime } from "../../../src/runtime.ts";
import { systemRuntime } from "../../../src/runtime.ts";

/** What became of a call. */
export type Outcome<Value> = { readonly value: Value } | { readonly error: unknown };

/** A runtime whose time passes only while nothing else can happen. */
export interface VirtualRuntime extends Runtime {
  /** Lets time pass until the call has settled; fails when it does not within `limit` ms. */
  settle<Value>(call: () => Promise<Value>, limit?: number): Promise<Outcome<Value>>;
  /** Fires what timers are left, as far as `ms` from now, and what that leads to. */
  drain(ms: number): Promise<void>;
}

// Turns of the event loop in which a stubbed answer, with its stream, is read to its end.
const turns = 3;

/** Time begins today, so that clocks of the engine and fences look as they do. */
export function virtualRuntime(): VirtualRuntime {
  let time = 0;
  const timers = new Set<{ readonly at: number; readonly callback: () => void }>();

  async function quiet(): Promise<void> {
    for (let turn = 0; turn < turns; turn++) await setImmediate();
  }

  /** Fires the next timer that is due until then; tells whether there was one. */
  function fireNext(until: number): boolean {
    let next: { readonly at: number; readonly callback: () => void } | undefined;
    for (const timer of timers) if (!next || timer.at < next.at) next = timer;
    if (!next || next.at > until) return false;
    timers.delete(next);
    time = Math.max(time, next.at);
    next.callback();
    return true;
  }

  return {
    now: () => 1_763_714_567_890 + time,
    monotonic: () => time,
    timer(ms, callback) {
      // As platforms do: NaN is no delay at all.
      const timer = { at: time + Math.max(0, ms || 0), callback };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    random: systemRuntime.random,
    randomBytes: systemRuntime.randomBytes,
    async settle<Value>(call: () => Promise<Value>, limit = 60_000) {
      const until = time + limit;
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
        if (fireNext(until)) {
          fired += 1;
          busy = performance.now();
        }
        // Time that stands still while timers fire is a tight loop.
        if (fired > 6_000) throw new Error(`a call goes on and on, at ${time} ms`);
        // Hashes are computed in threads, outside of this time: they alone may take a while of the machine's.
        if (performance.now() - busy > 5_000) throw new Error(`a call hangs: not settled ${limit} ms later`);
      }
    },
    async drain(ms) {
      const until = time + ms;
      await quiet();
      while (fireNext(until)) await quiet();
      time = until;
    },
  };
}
