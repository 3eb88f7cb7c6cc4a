import { setImmediate } from "node:timers/promises";
import type { Runtime } from "../../src/runtime.ts";

/** A runtime whose time passes only when the test says so. */
export interface SteppingRuntime extends Runtime {
  /** Added to the wall clock alone; may be changed at any time. */
  wallOffset: number;
  /** While true, the monotonic clock stands still, as in a frozen process. */
  frozen: boolean;
  /** Share of its delay by which every timer fires early, 0 … 1. */
  early: number;
  /** Timers that have not fired and were not cancelled. */
  readonly pending: number;
  /** Lets `ms` pass, firing what falls due on the way, and what that leads to. */
  advance(ms: number): Promise<void>;
}

/** Time begins at a round number, and stands still. */
export function steppingRuntime(): SteppingRuntime {
  let time = 0;
  let monotonic = 0;
  let count = 0;
  const timers = new Set<{ readonly at: number; readonly callback: () => void }>();

  /** Lets promises settle. */
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
