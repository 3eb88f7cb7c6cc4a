import { EventQueue } from "../../../local/src/memory/event-queue.ts";

/**
 * The time of a simulation. Unlike `VirtualTime`, it has no clocks: each process and each server has its own. It follows
 * promises without a turn of the event loop, because nothing here is computed in threads.
 */
export class Scheduler extends EventQueue {
  #wasQuiet = false;

  /** As `at`, for a call that settles no promise and ends nothing: the next event follows it in the same turn. */
  quietlyAt(time: number, run: () => void): void {
    this.at(time, () => {
      run();
      this.#wasQuiet = true;
    });
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

  /** Lets time pass until a promise has settled, or for so many ms. @returns whether it has settled */
  async settle(work: Promise<unknown>, within: number): Promise<boolean> {
    let isOver = false;
    const end = () => {
      isOver = true;
    };
    work.then(end, end);
    await this.run(this.now + within, () => isOver);
    return isOver;
  }

  /** Runs the next event that is due by `until`, and the quiet ones before it, or returns false. */
  #next(until: number): boolean {
    do {
      this.#wasQuiet = false;
      if (!this.next(until)) {
        this.now = Math.max(this.now, until);
        return false;
      }
    } while (this.#wasQuiet);
    return true;
  }
}

const resolved = Promise.resolve();

/**
 * Calls `next` when all promises wait for time to pass. `nextTick` runs after the last microtask, and costs less than a
 * turn of the event loop.
 */
function afterMicrotasks(next: () => void): void {
  void resolved.then(() => process.nextTick(next));
}
