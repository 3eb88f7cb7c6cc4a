// Virtual time: nothing happens until the page advances it, so it can be slow, fast or stopped.

interface Scheduled {
  readonly at: number;
  readonly happen: () => void;
}

/** The time of one world. */
export class Scheduler {
  /** ms since the world began. */
  now = 0;
  #scheduled: Scheduled[] = [];

  /** Calls `happen` once at `time`. @returns cancels it */
  at(time: number, happen: () => void): () => void {
    const scheduled = { at: Math.max(time, this.now), happen };
    const later = this.#scheduled.findIndex(({ at }) => at > scheduled.at);
    this.#scheduled.splice(later < 0 ? this.#scheduled.length : later, 0, scheduled);
    return () => {
      const index = this.#scheduled.indexOf(scheduled);
      if (index >= 0) this.#scheduled.splice(index, 1);
    };
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.at(this.now + ms, resolve));
  }

  /** Lets everything happen that is due until `time`. */
  async advance(time: number): Promise<void> {
    await settled();
    for (let next = this.#scheduled[0]; next && next.at <= time; next = this.#scheduled[0]) {
      this.#scheduled.shift();
      this.now = next.at;
      next.happen();
      await settled();
    }
    this.now = Math.max(this.now, time);
  }
}

/** Resolves when promises that wait for no timer have settled. A signature is checked by the platform, in a few turns. */
async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) {
    await new Promise<void>((resolve) => {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => {
        port1.close();
        resolve();
      };
      port2.postMessage(undefined);
    });
  }
}
