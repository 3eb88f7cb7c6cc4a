import { performance } from "node:perf_hooks";
import process from "node:process";

let factor = 1;
let measuredAt = Number.NEGATIVE_INFINITY;

/**
 * A time limit for a machine of any load: `ms` if this process gets a core when it wants one, else longer by as much as
 * it has to wait for one, up to six times. For the `timeout` of clients that must get answers in time and still
 * give up in this test, and for bounds on how long something may take.
 *
 * @example
 * const { redlock } = at.client({ timeout: paced(300) });
 */
export function paced(ms: number): number {
  if (performance.now() > measuredAt + 2_000) {
    factor = measure();
    measuredAt = performance.now();
  }
  return Math.round(ms * factor);
}

/** How often as long as its computing time 30 ms of computing take, with room for what is worse than the average. */
function measure(): number {
  const began = performance.now();
  const cpu = process.cpuUsage();
  let used = 0;
  while (used < 30) {
    const { user, system } = process.cpuUsage(cpu);
    used = (user + system) / 1_000;
  }
  const share = (performance.now() - began) / used;
  return Math.min(6, Math.max(1, 2 * share - 1.5));
}
