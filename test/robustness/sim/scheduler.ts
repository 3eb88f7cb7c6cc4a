/** Virtual time: what happens when. Nothing passes but what the scheduler lets pass. */
export class Scheduler {
  /** ms since the simulation began. */
  now = 0;
  readonly #queue: Scheduled[] = [];
  #order = 0;

  /** Has `run` called at a time, after everything that is due before; the returned function cancels it. */
  at(time: number, run: () => void): () => void {
    this.#order += 1;
    const scheduled: Scheduled = { time: Math.max(time, this.now), order: this.#order, run };
    push(this.#queue, scheduled);
    return () => {
      scheduled.run = undefined;
    };
  }

  /** Lets time pass until `until`, or until `ended` says so; whatever one event leads to is over before the next. */
  async run(until: number, ended: () => boolean = () => false): Promise<void> {
    await settle();
    while (!ended()) {
      const next = this.#queue[0];
      if (!next || next.time > until) {
        this.now = Math.max(this.now, until);
        return;
      }
      pop(this.#queue);
      if (!next.run) continue;
      this.now = next.time;
      next.run();
      await settle();
    }
  }
}

interface Scheduled {
  readonly time: number;
  /** Of two that are due at once, the one that was scheduled first. */
  readonly order: number;
  run: (() => void) | undefined;
}

/**
 * Ends when all promises have been followed to where they wait for time. A tick of Node's own queue comes only
 * after the last microtask, and costs less than a turn of the event loop.
 */
function settle(): Promise<void> {
  return new Promise((resolve) => queueMicrotask(() => process.nextTick(resolve)));
}

function isBefore(one: Scheduled, other: Scheduled): boolean {
  return one.time < other.time || (one.time === other.time && one.order < other.order);
}

/** A binary heap, because a simulation has thousands of timers, most of them cancelled. */
function push(heap: Scheduled[], added: Scheduled): void {
  let place = heap.length;
  heap.push(added);
  while (place > 0) {
    const parent = (place - 1) >> 1;
    if (!isBefore(added, heap[parent]!)) break;
    heap[place] = heap[parent]!;
    place = parent;
  }
  heap[place] = added;
}

function pop(heap: Scheduled[]): void {
  const last = heap.pop();
  if (!last || heap.length === 0) return;
  let place = 0;
  for (;;) {
    let child = 2 * place + 1;
    if (child >= heap.length) break;
    if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child += 1;
    if (!isBefore(heap[child]!, last)) break;
    heap[place] = heap[child]!;
    place = child;
  }
  heap[place] = last;
}
