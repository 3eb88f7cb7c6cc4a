import {
  type Endpoint,
  type Lock,
  type LockOptions,
  Redlock,
  type Runtime,
  systemRuntime,
} from "../../../../src/index.ts";
import { pubSub } from "../../../../src/wake-up/index.ts";
import { patient } from "../../../support/beyond-tests.ts";

/** What came of contenders for one lock. */
export interface Contention {
  readonly served: number;
  /** Most holders at once. */
  readonly most: number;
  /** Rounds of all contenders together. */
  readonly rounds: number;
}

/** Some clients, each a process of its own, that acquire one lock one after another and release it at once. */
export class Contenders {
  readonly resource: string;
  readonly #options: LockOptions;
  readonly #runtime: Runtime;
  readonly #result = { served: 0, most: 0, rounds: 0 };
  #inside = 0;

  constructor(resource: string, options: LockOptions = {}, runtime: Runtime = systemRuntime) {
    this.resource = resource;
    this.#runtime = runtime;
    this.#options = { ...patient, wait: Infinity, wakeUp: pubSub, ...options };
  }

  client(endpoints: readonly Endpoint[]): Redlock {
    return new Redlock({
      ...this.#options,
      runtime: this.#runtime,
      endpoints,
      onEvent: (event) => {
        if (event.type === "acquired") this.#result.rounds += event.rounds;
      },
    });
  }

  /** Starts a contender, which is served once. `hold` is awaited while it has the lock. */
  async contend(endpoints: readonly Endpoint[], hold?: (lock: Lock) => Promise<unknown>): Promise<void> {
    const lock = await this.client(endpoints).acquire(this.resource);
    this.#inside += 1;
    this.#result.most = Math.max(this.#result.most, this.#inside);
    await hold?.(lock);
    this.#inside -= 1;
    this.#result.served += 1;
    await lock.release();
  }

  get result(): Contention {
    return { ...this.#result };
  }
}
