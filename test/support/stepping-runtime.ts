import { setImmediate } from "node:timers/promises";
import type { Runtime } from "../../src/runtime.ts";

/** A runtime whose time advances only when the test calls `advance`. */
export interface SteppingRuntime extends Runtime {
  /** ms added to the wall clock only. May be changed at any time. */
  wallOffset: number;
  /** While true, the monotonic clock stops, as in a frozen process. */
  frozen: boolean;
  /** Share of its delay by which every timer fires early, from 0 to 1. */
  early: number;
  /** Number of timers that have not fired and were not cancelled. */
  readonly pending: number;
  /** Advances time by `ms`. Fires the timers that become due, also those that other timers start. */
  advance(ms: number): Promise<void>;
}

/** A new runtime. Its wall clock starts at 1 700 000 000 000 ms. */
export function steppingRuntime(): SteppingRuntime {
  let time = 0;
  let monotonic = 0;
  let count = 0;
  const timers = new Set<{ readonly at: number; readonly callback: () => void }>();

  /** Waits until promises that need no timer have settled. */
  async function settle(): Promise<void> {
    await setImmediate();
    await setImmediate();
  }

  function move(to: number): void {
    if (!runtime.frozen) monotonic += to - time;
    time = to;
  }

  const runtime: SteppingRuntime = {
    wallOffset: 0,
    frozen: false,
    early: 0,
    get pending() {
      return timers.size;
    },
    now: () => 1_700_000_000_000 + time + runtime.wallOffset,
    monotonic: () => monotonic,
    timer(ms, callback) {
      const timer = { at: time + ms * (1 - runtime.early), callback };
      timers.add(timer);
      return () => timers.delete(timer);
    },
    random: () => 0.5,
    randomBytes(bytes) {
      count += 1;
      bytes.fill(count);
    },
    async advance(ms) {
      const end = time + ms;
      await settle();
      for (;;) {
        const due = [...timers].filter(({ at }) => at <= end).sort((a, b) => a.at - b.at)[0];
        if (!due) break;
        timers.delete(due);
        move(Math.max(time, due.at));
        due.callback();
        await settle();
      }
      move(end);
    },
  };
  return runtime;
}
