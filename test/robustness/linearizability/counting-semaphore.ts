import type { GrantRecord } from "./history.ts";

/** A run of a semaphore: its grants, and the largest number of holders at once, by plain counting. */
export interface SemaphoreRun {
  readonly records: readonly GrantRecord[];
  readonly most: number;
}

const endpoints = [0, 1, 2];
const quorum = 2;

/**
 * A semaphore on three endpoints in plain memory, each of which counts its holders and grants while there are fewer
 * than `permits`; a contender that has a quorum of them counts as granted. Requests may be lost. A
 * semaphore must not work like this: three contenders, each missing another endpoint, fill three endpoints of two
 * permits.
 */
export function countingSemaphoreRun(random: () => number, permits: number): SemaphoreRun {
  const counters = endpoints.map(() => new Set<string>());
  return run(random, (name) => {
    const granting = counters.filter((counter) => random() < 0.7 && counter.size < permits);
    for (const counter of granting) counter.add(name);
    const free = () => {
      for (const counter of granting) counter.delete(name);
    };
    if (granting.length >= quorum) return free;
    free();
    return undefined;
  });
}

/** The same, but every permit is a lock of its own: a quorum of the endpoints must grant the same slot. */
export function slotSemaphoreRun(random: () => number, permits: number): SemaphoreRun {
  const slots = Array.from({ length: permits }, () => endpoints.map((): string | undefined => undefined));
  return run(random, (name) => {
    for (const slot of slots) {
      const granting = endpoints.filter((endpoint) => random() < 0.7 && slot[endpoint] === undefined);
      for (const endpoint of granting) slot[endpoint] = name;
      const free = () => {
        for (const endpoint of granting) slot[endpoint] = undefined;
      };
      if (granting.length >= quorum) return free;
      free();
    }
    return undefined;
  });
}

/** Twelve contenders in turn, each of which holds for a while. `acquire` returns how to free what it was granted. */
function run(random: () => number, acquire: (name: string) => (() => void) | undefined): SemaphoreRun {
  const records: GrantRecord[] = [];
  let held: { readonly until: number; readonly free: () => void }[] = [];
  let most = 0;
  for (let now = 0, count = 0; count < 12; count += 1, now += 10) {
    for (const { until, free } of held) if (until < now) free();
    held = held.filter(({ until }) => until >= now);
    const holder = `client ${count}`;
    const free = acquire(holder);
    if (!free) continue;
    const until = now + 5 + 10 * Math.floor(random() * 4);
    held.push({ until, free });
    most = Math.max(most, held.length);
    const release = { releaseInvoked: until, releaseReturned: until + 1, released: true };
    records.push({
      resource: "s",
      holder,
      invoked: now,
      acquired: now + 1,
      validUntil: now + 1_000,
      ...release,
    });
  }
  return { records, most };
}
