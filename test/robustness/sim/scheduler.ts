/** Virtual time: a queue of events. Time advances only from one event to the next. */
export class Scheduler {
  /** ms since the simulation began. */
  now = 0;
  readonly #queue: Scheduled[] = [];
  #order = 0;

  /** Schedules a call of `run`. The returned function cancels it. */
  at(time: number, run: () => void): () => void {
    const scheduled = this.#add(time, run, false);
    return () => {
      scheduled.run = undefined;
    };
  }

  /** The same for a call that settles no promise and ends nothing: the next event follows it in the same turn. */
  quietlyAt(time: number, run: () => void): void {
    this.#add(time, run, true);
  }

  #add(time: number, run: () => void, isQuiet: boolean): Scheduled {
    this.#order += 1;
    const scheduled: Scheduled = { time: Math.max(time, this.now), order: this.#order, run, isQuiet };
    push(this.#queue, scheduled);
    return scheduled;
  }

  /**
   * Lets time pass until `until`, or until `ended` returns true. All promises that one event resolves are followed
   * before the next event.
   */
  run(until: number, ended: () => boolean = () => false): Promise<void> {
    return new Promise((resolve, reject) => {
      const step = () => {
        try {
          if (ended() || !this.#next(until)) resolve();
          else afterMicrotasks(step);
        } catch (error) {
          reject(error);
        }
      };
      afterMicrotasks(step);
    });
  }

  /** Lets time pass at once, where no event settles a promise. */
  pass(until: number): void {
    while (this.#next(until));
  }

  /** Runs the next event that is due by `until`, and the quiet ones before it, or returns false. */
  #next(until: number): boolean {
    for (;;) {
      const next = this.#queue[0];
      if (!next || next.time > until) {
        this.now = Math.max(this.now, until);
        return false;
      }
      pop(this.#queue);
      if (!next.run) continue;
      this.now = next.time;
      next.run();
      if (!next.isQuiet) return true;
    }
  }
}

interface Scheduled {
  readonly time: number;
  /** The order of events that are due at the same time: that in which they were scheduled. */
  readonly order: number;
  run: (() => void) | undefined;
  readonly isQuiet: boolean;
}

const resolved = Promise.resolve();

/**
 * Calls `next` when all promises wait for time to pass. `nextTick` runs after the last microtask, and costs less than a
 * turn of the event loop.
 */
function afterMicrotasks(next: () => void): void {
  void resolved.then(() => process.nextTick(next));
}

function isBefore(one: Scheduled, other: Scheduled): boolean {
  return one.time < other.time || (one.time === other.time && one.order < other.order);
}

/** A binary heap: a simulation has thousands of timers, most of them cancelled. */
function push(heap: Scheduled[], added: Scheduled): void {
  let index = heap.length;
  heap.push(added);
  while (index > 0) {
    const parent = (index - 1) >> 1;
    if (!isBefore(added, heap[parent]!)) break;
    heap[index] = heap[parent]!;
    index = parent;
  }
  heap[index] = added;
}

function pop(heap: Scheduled[]): void {
  const last = heap.pop();
  if (!last || heap.length === 0) return;
  let index = 0;
  for (;;) {
    let child = 2 * index + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1;
    if (!isBefore(heap[child]!, last)) break;
    heap[index] = heap[child]!;
    index = child;
  }
  heap[index] = last;
}
