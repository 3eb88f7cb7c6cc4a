import type { Actor, Slot } from "./actor.ts";
import type { Client } from "./client.ts";

/** What a process does with what it gets. */
export interface Work {
  /** What its button says. */
  readonly label: string;
  readonly key: string;
  /** The name of what it gets next. */
  next(): string;
  /** Handles it. @returns what has become of it, in a word */
  handle(name: string): Promise<string>;
}

/** A process that handles what it gets: deliveries, or messages. */
export class Handler implements Actor {
  readonly client: Client;
  readonly slots: readonly Slot[];
  readonly #work: Work;
  #open = 0;
  #last = "has received nothing";

  constructor(client: Client, work: Work) {
    this.client = client;
    this.#work = work;
    const isPossible = () => !client.isFrozen;
    this.slots = [[{ label: work.label, isPossible, act: () => this.receive() }]];
  }

  get says(): string {
    return `${this.client.isFrozen ? "frozen, " : ""}${this.isBusy ? "at work" : this.#last}`;
  }

  get isBusy(): boolean {
    return this.#open > 0;
  }

  /** It gets something. */
  async receive(): Promise<void> {
    const { client } = this;
    const { key, next, handle } = this.#work;
    client.calls += 1;
    const about = { operation: next(), key, call: `${client.calls}` };
    client.record({ phase: "called", ...about });
    this.#open += 1;
    try {
      const name = await handle(about.operation);
      this.#last = `${about.operation}: ${name}`;
      client.record({ phase: "returned", ...about, outcome: "granted", name });
    } catch (error) {
      this.#last = `${about.operation}: failed`;
      client.record({ phase: "returned", ...about, outcome: "error", detail: String(error) });
    }
    this.#open -= 1;
  }
}
