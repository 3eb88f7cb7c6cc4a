/** What is to happen in virtual time, in order. */
export class EventQueue {
  /** ms since it began. It moves only from one event to the next. */
  now = 0;
  readonly #heap: Entry[] = [];
  #order = 0;
  #pending = 0;

  /** How many events have neither happened nor been cancelled. */
  get pending(): number {
    return this.#pending;
  }

  /** Lets `happen` happen at `time`, or now if that is over. The returned function cancels it. */
  at(time: number, happen: () => void): () => void {
    this.#order += 1;
    const entry: Entry = { time: Math.max(time, this.now), order: this.#order, happen };
    push(this.#heap, entry);
    this.#pending += 1;
    return () => {
      if (entry.happen) this.#pending -= 1;
      entry.happen = undefined;
    };
  }

  /** Lets the next event happen, if it is due by `until`. Returns whether there was one. */
  next(until: number): boolean {
    for (;;) {
      const first = this.#heap[0];
      if (!first || first.time > until) return false;
      pop(this.#heap);
      const { happen } = first;
      if (!happen) continue;
      first.happen = undefined;
      this.#pending -= 1;
      this.now = first.time;
      happen();
      return true;
    }
  }
}

interface Entry {
  readonly time: number;
  /** The order of events that are due at the same time: that in which they were added. */
  readonly order: number;
  happen: (() => void) | undefined;
}

function isBefore(one: Entry, other: Entry): boolean {
  return one.time < other.time || (one.time === other.time && one.order < other.order);
}

// A binary heap: a simulation has thousands of timers, most of them cancelled.

function push(heap: Entry[], added: Entry): void {
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

function pop(heap: Entry[]): void {
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
