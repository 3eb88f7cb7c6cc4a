import TinyQueue from "tinyqueue";

/** What is to happen in virtual time, in order. */
export class EventQueue {
  /** ms since it began. It moves only from one event to the next. */
  now = 0;
  readonly #events = new TinyQueue<Entry>(
    [],
    (one, other) => one.time - other.time || one.order - other.order,
  );
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
    this.#events.push(entry);
    this.#pending += 1;
    return () => {
      if (entry.happen) this.#pending -= 1;
      entry.happen = undefined;
    };
  }

  /** Lets the next event happen, if it is due by `until`. Returns whether there was one. */
  next(until: number): boolean {
    for (let first = this.#events.peek(); first && first.time <= until; first = this.#events.peek()) {
      this.#events.pop();
      const { happen } = first;
      if (!happen) continue;
      first.happen = undefined;
      this.#pending -= 1;
      this.now = first.time;
      happen();
      return true;
    }
    return false;
  }
}

interface Entry {
  readonly time: number;
  /** The order of events that are due at the same time: that in which they were added. */
  readonly order: number;
  happen: (() => void) | undefined;
}
